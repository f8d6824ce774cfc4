import { endpoint } from '../../../http/endpoint.ts'

export const removePolicyList = endpoint(
  'DELETE /_hearth/admin/v1/policy_lists/{roomId}',
  { auth: 'admin', grave: true },
  async ({ params }, { admin }) => {
    await admin.policyLists.remove(params.roomId)
    return {}
  },
)
