import type { ProtocolError } from '../../../core/errors.ts'
import type { Services } from '../../../domain/services.ts'
import type { RawReply } from '../../../http/endpoint.ts'
import type { EndpointRequest } from '../../../http/request.ts'
import { pageReply } from '../../web/page.ts'
import type { Owner } from '../signed-in.ts'
import { visitorForm } from '../visitor.ts'

export const DATA_PAGE = '/_hearth/account/data'

export function dataPage(
  services: Services,
  { acceptLanguage }: Pick<EndpointRequest, 'acceptLanguage'>,
  owner: Owner,
  problem?: ProtocolError,
): RawReply {
  const values = { form: visitorForm(owner, {}, DATA_PAGE), user_id: owner.session.userId }
  const options = { acceptLanguage, problem, status: problem?.status, isSecret: true } as const
  return pageReply(services, 'account-data.page', values, options)
}
