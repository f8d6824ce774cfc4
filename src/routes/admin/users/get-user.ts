import { endpoint } from '../../../http/endpoint.ts'

export const getUser = endpoint('GET /_synapse/admin/v2/users/{userId}', { auth: 'admin' }, ({ params }, { admin }) =>
  admin.users.get(params.userId),
)
