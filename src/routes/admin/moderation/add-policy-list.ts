import { endpoint } from '../../../http/endpoint.ts'

export const addPolicyList = endpoint(
  'PUT /_hearth/admin/v1/policy_lists/{roomId}',
  { auth: 'admin', grave: true },
  ({ requester, params }, { admin }) => admin.policyLists.add(requester.name, params.roomId),
)
