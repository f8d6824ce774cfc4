import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const updateUserDevice = endpoint(
  'PUT /_synapse/admin/v2/users/{userId}/devices/{deviceId}',
  { auth: 'admin', body: Type.Object({ display_name: Type.Optional(Type.String()) }), bodyOptional: true },
  async ({ params, body }, { admin }) => {
    await admin.users.renameDevice(params.userId, params.deviceId, body.display_name)
    return {}
  },
)
