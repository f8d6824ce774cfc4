import { AnyObject, endpoint } from '../../../http/endpoint.ts'

export const logOutUser = endpoint(
  'POST /_hearth/admin/v1/users/{userId}/logout',
  { auth: 'admin', grave: true, body: AnyObject, bodyOptional: true },
  async ({ params }, { admin }) => ({ devices: await admin.users.logOut(params.userId) }),
)
