import { endpoint } from '../../../http/endpoint.ts'

export const getUserAccountData = endpoint(
  'GET /_synapse/admin/v1/users/{userId}/accountdata',
  { auth: 'admin', recorded: true },
  ({ params }, { admin }) => admin.users.accountData(params.userId),
)
