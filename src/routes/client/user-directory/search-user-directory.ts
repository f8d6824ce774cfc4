import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const searchUserDirectory = endpoint(
  'POST C/user_directory/search',
  {
    auth: 'user',
    suspended: true,
    limited: 'other',
    body: Type.Object({ search_term: Type.String(), limit: Type.Optional(Type.Integer({ minimum: 0 })) }),
  },
  ({ requester, body: { search_term, limit } }, { userDirectory }) =>
    userDirectory.search(requester, search_term, limit),
)
