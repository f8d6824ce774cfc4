import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { roomEventFilterOf } from './room-event-filter-of.ts'

const Query = Type.Object({
  dir: Type.Union([Type.Literal('b'), Type.Literal('f')]),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  filter: Type.Optional(Type.String()),
})

export const getRoomEvents = endpoint(
  'GET C/rooms/{roomId}/messages',
  { auth: 'user', anywhere: true, guests: true, query: Query },
  async ({ requester, params, query }, { roomReader, sync }) => {
    const { dir: direction, from, to, limit } = query
    const filter = roomEventFilterOf(query.filter)
    const page = () => roomReader.messages(requester, params.roomId, { direction, from, to, limit, filter })
    return rawReply(await sync.answer(requester, page))
  },
)
