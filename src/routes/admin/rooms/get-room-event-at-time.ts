import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { Direction } from './read-query.ts'

export const getRoomEventAtTime = endpoint(
  'GET /_synapse/admin/v1/rooms/{roomId}/timestamp_to_event',
  { auth: 'admin', query: Type.Object({ ts: Type.Integer({ minimum: 0 }), dir: Direction }) },
  ({ params, query }, { admin }) => admin.roomReading.eventAtTime(params.roomId, query.ts, query.dir ?? 'f'),
)
