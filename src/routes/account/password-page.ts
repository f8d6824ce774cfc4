import type { ProtocolError } from '../../core/errors.ts'
import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { pageReply } from '../web/page.ts'
import type { Owner } from './signed-in.ts'
import { visitorForm } from './visitor.ts'

export const PASSWORD_PAGE = '/_hearth/account/password'

export function passwordPage(
  services: Services,
  { acceptLanguage }: Pick<EndpointRequest, 'acceptLanguage'>,
  owner: Owner,
  problem?: ProtocolError,
): RawReply {
  const values = {
    form: visitorForm(owner, {}, PASSWORD_PAGE),
    user_id: owner.session.userId,
    min_length: String(services.config.passwords.min_length),
  }
  const options = { acceptLanguage, problem, status: problem?.status, isSecret: true } as const
  return pageReply(services, 'account-password.page', values, options)
}
