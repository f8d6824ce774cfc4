import { endpoint } from '../../../http/endpoint.ts'

export const listUserDevices = endpoint(
  'GET /_synapse/admin/v2/users/{userId}/devices',
  { auth: 'admin', recorded: true },
  async ({ params }, { admin }) => {
    const devices = await admin.users.devices(params.userId)
    return { devices, total: devices.length }
  },
)
