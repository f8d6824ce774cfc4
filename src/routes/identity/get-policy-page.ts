import { ProtocolError } from '../../core/errors.ts'
import { brandOf } from '../../domain/public-address.ts'
import { endpoint } from '../../http/endpoint.ts'
import { pageReply } from '../web/page.ts'
import { policyPage } from '../web/policy-page.ts'

export const getPolicyPage = endpoint(
  'GET /identity/policies/{policyId}/{version}/{language}',
  { auth: 'none' },
  async ({ params }, { identity, config }) => {
    const policy = await identity.terms.read(params)
    if (policy === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no such policy here.')
    return pageReply(policyPage(policy, brandOf(config)))
  },
)
