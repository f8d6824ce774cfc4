import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({
  suggested_only: Type.Optional(Type.Boolean()),
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
  max_depth: Type.Optional(Type.Integer({ minimum: 0 })),
  from: Type.Optional(Type.String()),
})

export const getSpaceHierarchy = endpoint(
  'GET C1/rooms/{roomId}/hierarchy',
  { auth: 'user', limited: 'other', query: Query },
  ({ requester, params, query: { suggested_only: suggestedOnly, max_depth: maxDepth, limit, from } }, { spaces }) =>
    spaces.hierarchy(requester, params.roomId, { suggestedOnly, maxDepth, limit, from }),
)
