import { endpoint } from '../../../http/endpoint.ts'

export const getUserDevice = endpoint(
  'GET /_synapse/admin/v2/users/{userId}/devices/{deviceId}',
  { auth: 'admin', recorded: true },
  ({ params }, { admin }) => admin.users.device(params.userId, params.deviceId),
)
