import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const getRoomGraph = endpoint(
  'GET /_hearth/admin/v1/rooms/{roomId}/graph',
  { auth: 'admin', query: Type.Object({ before: Type.Optional(Type.Integer()) }) },
  ({ params, query }, { admin }) => admin.views.graph.read(params.roomId, query.before),
)
