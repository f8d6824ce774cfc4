import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const deleteUserDevices = endpoint(
  'POST /_synapse/admin/v2/users/{userId}/delete_devices',
  { auth: 'admin', grave: true, body: Type.Object({ devices: Type.Array(Type.String()) }) },
  async ({ params, body }, { admin }) => {
    await admin.users.removeDevices(params.userId, body.devices)
    return {}
  },
)
