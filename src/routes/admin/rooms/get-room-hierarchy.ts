import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
  max_depth: Type.Optional(Type.Integer({ minimum: 0 })),
  from: Type.Optional(Type.String()),
})

export const getRoomHierarchy = endpoint(
  'GET /_synapse/admin/v1/rooms/{roomId}/hierarchy',
  { auth: 'admin', query: Query },
  ({ params, query: { max_depth: maxDepth, limit, from } }, { admin }) =>
    admin.roomReading.hierarchy(params.roomId, { suggestedOnly: undefined, maxDepth, limit, from }),
)
