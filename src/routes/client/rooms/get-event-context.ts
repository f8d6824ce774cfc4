import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { roomEventFilterOf } from './room-event-filter-of.ts'

const Query = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  filter: Type.Optional(Type.String()),
})

export const getEventContext = endpoint(
  'GET C/rooms/{roomId}/context/{eventId}',
  { auth: 'user', anywhere: true, guests: true, query: Query },
  async ({ requester, params, query }, { roomReader, sync }) => {
    const wish = { limit: query.limit, filter: roomEventFilterOf(query.filter) }
    const context = () => roomReader.context(requester, params.roomId, params.eventId, wish)
    return rawReply(await sync.answer(requester, context))
  },
)
