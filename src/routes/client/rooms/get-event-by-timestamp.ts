import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({
  ts: Type.Integer({ minimum: 0 }),
  dir: Type.Union([Type.Literal('b'), Type.Literal('f')]),
})

export const getEventByTimestamp = endpoint(
  'GET C1/rooms/{roomId}/timestamp_to_event',
  { auth: 'user', guests: true, limited: 'other', query: Query },
  ({ requester, params, query }, { roomReader }) =>
    roomReader.eventAtTime(requester, params.roomId, query.ts, query.dir),
)
