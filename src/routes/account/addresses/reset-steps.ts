import type { ProtocolError } from '../../../core/errors.ts'
import type { UiaView } from '../../../domain/accounts/interactive-auth.ts'
import { CONTACT_STAGES } from '../../../domain/contact/contact-proofs.ts'
import type { Services } from '../../../domain/services.ts'
import type { RawReply } from '../../../http/endpoint.ts'
import type { EndpointRequest } from '../../../http/request.ts'
import { pageReply } from '../../web/page.ts'
import { type Visitor, visitorForm } from '../visitor.ts'

/** The operation that sets a password: who has forgotten theirs proves an address of the account. */
export const SET_PASSWORD = 'POST C/account/password'
export const RESET_STAGE = CONTACT_STAGES.email
export const RESET_PAGE = '/_hearth/account/reset'

/** Whether the address is proven, and only the new password is missing. */
export const isAddressProven = ({ completed }: UiaView): boolean => completed.includes(RESET_STAGE)

export function newPasswordPage(
  services: Services,
  { acceptLanguage }: Pick<EndpointRequest, 'acceptLanguage'>,
  visitor: Visitor,
  { session, problem }: { readonly session: string; readonly problem?: ProtocolError },
): RawReply {
  const values = { form: visitorForm(visitor, { session }), min_length: String(services.config.passwords.min_length) }
  const { cookies } = visitor
  const options = { acceptLanguage, problem, status: problem?.status, isSecret: true, cookies } as const
  return pageReply(services, 'account-new-password.page', values, options)
}
