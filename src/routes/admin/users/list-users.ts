import { endpoint } from '../../../http/endpoint.ts'
import { UsersQuery, wantedUsers } from './users-query.ts'

export const listUsers = endpoint(
  'GET /_synapse/admin/v2/users',
  { auth: 'admin', query: UsersQuery },
  ({ query }, { admin }) =>
    // Unless they are asked for, deactivated accounts are left out; asked for, they come among the others.
    admin.users.list({ ...wantedUsers(query), isDeactivated: query.deactivated === true ? undefined : false }, query),
)
