import { ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { checkText } from '../../../domain/text.ts'
import { endpoint } from '../../../http/endpoint.ts'

const MAX_TERM_CHARS = 512

/** Finds accounts by a part of their names. The answer holds no password hashes, unlike what older tools may expect. */
export const searchUsers = endpoint(
  'GET /_synapse/admin/v1/search_users/{userId}',
  { auth: 'admin', query: Type.Object({ term: Type.String() }) },
  async ({ query: { term } }, { admin }) => {
    checkText('term', term, MAX_TERM_CHARS)
    if (term === '') throw new ProtocolError('M_INVALID_PARAM', "Query parameter 'term' is empty.")
    return admin.users.search(term)
  },
)
