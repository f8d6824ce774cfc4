import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { goTo } from '../oauth/answer.ts'
import { pageReply } from '../web/page.ts'
import { shownTime } from './shown.ts'
import type { Owner } from './signed-in.ts'
import { visitorForm } from './visitor.ts'

/** One session, with a way to end it. `isEnding`: whether its owner wants that. */
export async function sessionPage(
  services: Services,
  reader: Pick<EndpointRequest, 'acceptLanguage'>,
  owner: Owner,
  { deviceId, isEnding }: { readonly deviceId: string; readonly isEnding: boolean },
): Promise<RawReply> {
  const sessions = await services.oauth.ownAccount.sessions(owner.session.userNid)
  const session = sessions.find((each) => each.deviceId === deviceId)
  if (session === undefined) return goTo('/_hearth/account')
  const { name, host, createdAt, seenAt, ip, userAgent } = session
  const values = {
    form: visitorForm(owner, { device_id: deviceId }, '/_hearth/account/session'),
    is_ending: isEnding ? 'yes' : '',
    user_id: owner.session.userId,
    device_id: deviceId,
    name,
    host,
    since: shownTime(createdAt, reader),
    seen: seenAt === undefined ? '' : shownTime(seenAt, reader),
    ip,
    agent: userAgent,
  }
  const { acceptLanguage } = reader
  return pageReply(services, 'account-session.page', values, { acceptLanguage, isSecret: true })
}
