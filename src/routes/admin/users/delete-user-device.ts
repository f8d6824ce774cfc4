import { endpoint } from '../../../http/endpoint.ts'

export const deleteUserDevice = endpoint(
  'DELETE /_synapse/admin/v2/users/{userId}/devices/{deviceId}',
  { auth: 'admin', grave: true },
  async ({ params }, { admin }) => {
    await admin.users.removeDevices(params.userId, [params.deviceId])
    return {}
  },
)
