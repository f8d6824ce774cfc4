import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const setUserAdmin = endpoint(
  'PUT /_synapse/admin/v1/users/{userId}/admin',
  { auth: 'admin', grave: true, body: Type.Object({ admin: Type.Boolean() }) },
  async ({ requester, params, body }, { admin }) => {
    await admin.users.setAdmin(requester, params.userId, body.admin)
    return {}
  },
)
