import { endpoint } from '../../../http/endpoint.ts'

export const listPolicyLists = endpoint(
  'GET /_hearth/admin/v1/policy_lists',
  { auth: 'admin' },
  async (_request, { admin }) => ({ policy_lists: await admin.policyLists.list() }),
)
