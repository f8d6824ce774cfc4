import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({ from: Type.String(), to: Type.String() })

export const getKeysChanges = endpoint(
  'GET C/keys/changes',
  { auth: 'user', limited: 'other', guests: true, query: Query, also: ['CU/keys/changes'] },
  ({ requester, query }, { keyChanges }) => keyChanges.between(requester, query.from, query.to),
)
