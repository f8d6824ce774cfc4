import type { Config } from '../../../config/schema.ts'
import type { ProtocolError } from '../../../core/errors.ts'
import type { Services } from '../../../domain/services.ts'
import type { RawReply } from '../../../http/endpoint.ts'
import type { EndpointRequest } from '../../../http/request.ts'
import { pageReply } from '../../web/page.ts'
import type { Owner } from '../signed-in.ts'
import { proofFor, visitorForm } from '../visitor.ts'

export const PHONE_PAGE = '/_hearth/account/phone'

/** As for email addresses. */
export const phoneSecretOf = (owner: Owner): string => proofFor(owner, 'phone')

/** Whether text messages can be sent. */
export function canAddPhone({ identity, contact }: Pick<Config, 'identity' | 'contact'>): boolean {
  const hasGateway = identity.sms.gateway !== 'none' && identity.sms.gateway !== 'outbox'
  return hasGateway && !contact.validated_elsewhere.includes('msisdn')
}

/** Asks for a number; or, once a message is on its way (`sid`), for the code in it. */
export function phonePage(
  services: Services,
  { acceptLanguage }: Pick<EndpointRequest, 'acceptLanguage'>,
  owner: Owner,
  { number, sid, problem }: { readonly number?: string; readonly sid?: string; readonly problem?: ProtocolError } = {},
): RawReply {
  const values = {
    form: visitorForm(owner, sid === undefined ? {} : { sid, number }, PHONE_PAGE),
    user_id: owner.session.userId,
    number,
    sent_to: sid === undefined ? '' : number,
  }
  const options = { acceptLanguage, problem, status: problem?.status, isSecret: true } as const
  return pageReply(services, 'account-phone.page', values, options)
}
