import { hostOf } from '../../core/oauth/client-metadata.ts'
import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { askedSession } from '../oauth/asked-session.ts'
import { pageReply } from '../web/page.ts'
import { shownTime } from './shown.ts'
import { type Visitor, visitorForm } from './visitor.ts'

type Reader = Pick<EndpointRequest, 'acceptLanguage'>

/** Asks for the code of a device. `wrong`: the code that was tried. */
export function codePage(services: Services, { acceptLanguage }: Reader, visitor: Visitor, wrong?: string): RawReply {
  const form = visitorForm(visitor, {}, '/_hearth/account/link')
  const values = { form, user_code: wrong, is_wrong: wrong === undefined ? '' : 'yes' }
  const status = wrong === undefined ? 200 : 400
  return pageReply(services, 'account-link.page', values, { acceptLanguage, status, isSecret: true })
}

/** Shows which device waits with a code, and asks whether it is the person's own. */
export async function confirmPage(
  services: Services,
  reader: Reader,
  visitor: Visitor,
  code: string,
): Promise<RawReply> {
  const { oauth } = services
  const pending = await (await oauth.server()).pendingDevice(code)
  const client = pending && (await oauth.clients.find(pending.clientId))
  if (pending === undefined || client === undefined) return codePage(services, reader, visitor, code)
  const values = {
    form: visitorForm(visitor, { user_code: code }, '/_hearth/account/link'),
    host: hostOf(client.metadata),
    name: client.metadata.client_name,
    user_id: visitor.session?.userId,
    ...(await askedSession(services, pending.scope, visitor)),
    ip: pending.ip,
    agent: pending.userAgent,
    time: shownTime(pending.startedAt, reader),
  }
  const { acceptLanguage } = reader
  return pageReply(services, 'account-link-confirm.page', values, { acceptLanguage, isSecret: true })
}

export function decidedPage(services: Services, { acceptLanguage }: Reader, isAllowed: boolean): RawReply {
  const values = { is_allowed: isAllowed ? 'yes' : '' }
  return pageReply(services, 'account-link-done.page', values, { acceptLanguage, isSecret: true })
}
