import type { ProtocolError } from '../../../core/errors.ts'
import type { Services } from '../../../domain/services.ts'
import type { RawReply } from '../../../http/endpoint.ts'
import type { EndpointRequest } from '../../../http/request.ts'
import { pageReply } from '../../web/page.ts'
import type { Owner } from '../signed-in.ts'
import { proofFor, visitorForm } from '../visitor.ts'

export const EMAIL_PAGE = '/_hearth/account/email'

/** The secret of the validation: it belongs to this browser, so the page need not contain it. */
export const clientSecretOf = (owner: Owner): string => proofFor(owner, 'email')

/** Asks for an address; or, once a link is on its way (`sid`), for its confirmation. */
export function emailPage(
  services: Services,
  { acceptLanguage }: Pick<EndpointRequest, 'acceptLanguage'>,
  owner: Owner,
  { email, sid, problem }: { readonly email?: string; readonly sid?: string; readonly problem?: ProtocolError } = {},
): RawReply {
  const values = {
    form: visitorForm(owner, sid === undefined ? {} : { sid, email }, EMAIL_PAGE),
    user_id: owner.session.userId,
    email,
    sent_to: sid === undefined ? '' : email,
  }
  const options = { acceptLanguage, problem, status: problem?.status, isSecret: true } as const
  return pageReply(services, 'account-email.page', values, options)
}
