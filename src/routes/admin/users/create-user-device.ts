import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

export const createUserDevice = endpoint(
  'POST /_synapse/admin/v2/users/{userId}/devices',
  { auth: 'admin', body: Type.Object({ device_id: Type.String({ minLength: 1 }) }) },
  async ({ params, body }, { admin }) => {
    await admin.users.makeDevice(params.userId, body.device_id)
    return rawReply({ status: 201, body: '{}' })
  },
)
