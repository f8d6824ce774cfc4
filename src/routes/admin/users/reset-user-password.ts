import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({ new_password: Type.String(), logout_devices: Type.Optional(Type.Boolean()) })

export const resetUserPassword = endpoint(
  'POST /_synapse/admin/v1/reset_password/{userId}',
  { auth: 'admin', grave: true, body: Body },
  async ({ params, body }, { admin }) => {
    await admin.users.setPassword(params.userId, body.new_password, body.logout_devices ?? true)
    return {}
  },
)
