import { endpoint } from '../../../http/endpoint.ts'

export const getUserAdmin = endpoint(
  'GET /_synapse/admin/v1/users/{userId}/admin',
  { auth: 'admin' },
  async ({ params }, { admin }) => ({ admin: await admin.users.isAdmin(params.userId) }),
)
