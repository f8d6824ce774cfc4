import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { policyPage } from '../../web/policy-page.ts'

export const getPolicyPage = endpoint(
  'GET /identity/policies/{policyId}/{version}/{language}',
  { auth: 'none' },
  async ({ params }, services) => {
    const policy = await services.identity.terms.read(params)
    if (policy === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no such policy here.')
    return policyPage(services, policy)
  },
)
