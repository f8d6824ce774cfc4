import { endpoint } from '../../../http/endpoint.ts'

export const showIdentityPerson = endpoint(
  'GET /_hearth/admin/v1/identity/people/{person}',
  { auth: 'admin', recorded: true },
  ({ params }, { identity }) => identity.people.show(params.person),
)
