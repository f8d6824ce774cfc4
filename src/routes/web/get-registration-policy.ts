import { ProtocolError } from '../../core/errors.ts'
import { readPolicy } from '../../domain/identity/policies.ts'
import { endpoint } from '../../http/endpoint.ts'
import { policyPage } from './policy-page.ts'

export const getRegistrationPolicy = endpoint(
  'GET /policies/{policyId}/{version}/{language}',
  { auth: 'none' },
  async ({ params }, services) => {
    const policy = await readPolicy(services.registrationTerms.policies, params)
    if (policy === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no such policy here.')
    return policyPage(services, policy)
  },
)
