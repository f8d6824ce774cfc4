import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({ erase: Type.Optional(Type.Boolean()) })

export const deactivateUser = endpoint(
  'POST /_synapse/admin/v1/deactivate/{userId}',
  { auth: 'admin', grave: true, body: Body, bodyOptional: true },
  async ({ params, body }, { admin }) => ({
    id_server_unbind_result: await admin.users.deactivate(params.userId, body.erase ?? false),
  }),
)
