import { endpoint } from '../../../http/endpoint.ts'

export const getUserSessions = endpoint(
  'GET /_synapse/admin/v1/whois/{userId}',
  { auth: 'admin', recorded: true },
  ({ params }, { admin }) => admin.users.connections(params.userId),
)
