import { ProtocolError } from '../../core/errors.ts'
import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { pageReply } from '../web/page.ts'
import type { Owner } from './signed-in.ts'
import { visitorForm } from './visitor.ts'

export const DEACTIVATION_PAGE = '/_hearth/account/deactivate'

/** Names what deleting the account means. `isMistyped`: whether the confirmation was another text. */
export function deactivationPage(
  services: Services,
  { acceptLanguage }: Pick<EndpointRequest, 'acceptLanguage'>,
  owner: Owner,
  isMistyped: boolean,
): RawReply {
  const values = { form: visitorForm(owner, {}, DEACTIVATION_PAGE), user_id: owner.session.userId }
  const problem = isMistyped ? new ProtocolError('M_INVALID_PARAM', 'This is not your user id.') : undefined
  const options = { acceptLanguage, problem, status: problem?.status, isSecret: true } as const
  return pageReply(services, 'account-deactivate.page', values, options)
}
