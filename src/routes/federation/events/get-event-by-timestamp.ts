import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Query = Type.Object({
  ts: Type.Integer({ minimum: 0 }),
  dir: Type.Union([Type.Literal('b'), Type.Literal('f')]),
})

export const getEventByTimestamp = endpoint(
  'GET F/v1/timestamp_to_event/{roomId}',
  { auth: 'server', query: Query },
  ({ requester, params, query }, { federation }) =>
    federation.roomAnswers.eventAtTime(requester.server, params.roomId, query.ts, query.dir),
)
