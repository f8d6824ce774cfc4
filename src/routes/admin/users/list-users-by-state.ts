import { endpoint } from '../../../http/endpoint.ts'
import { UsersQuery, wantedUsers } from './users-query.ts'

export const listUsersByState = endpoint(
  'GET /_synapse/admin/v3/users',
  { auth: 'admin', query: UsersQuery },
  ({ query }, { admin }) => admin.users.list({ ...wantedUsers(query), isDeactivated: query.deactivated }, query),
)
