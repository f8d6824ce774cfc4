import { endpoint } from '../../../http/endpoint.ts'

export const eraseIdentityPerson = endpoint(
  'DELETE /_hearth/admin/v1/identity/people/{person}',
  { auth: 'admin', grave: true },
  ({ params }, { identity }) => identity.people.erase(params.person),
)
