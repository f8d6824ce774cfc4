import { endpoint } from '../../../http/endpoint.ts'
import { UsersQuery, wantedUsers } from './users-query.ts'

export const listUsers = endpoint(
  'GET /_synapse/admin/v2/users',
  { auth: 'admin', query: UsersQuery },
  ({ query }, { admin }) =>
    // `deactivated=true` includes deactivated accounts; otherwise they are left out.
    admin.users.list({ ...wantedUsers(query), isDeactivated: query.deactivated === true ? undefined : false }, query),
)
