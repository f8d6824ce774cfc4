import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { roomEventFilterOf } from '../../client/rooms/room-event-filter-of.ts'

const Query = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  filter: Type.Optional(Type.String()),
})

export const getRoomContext = endpoint(
  'GET /_synapse/admin/v1/rooms/{roomId}/context/{eventId}',
  { auth: 'admin', recorded: true, query: Query },
  async ({ params, query }, { admin }) => {
    const wish = { limit: query.limit, filter: roomEventFilterOf(query.filter) }
    return rawReply({ body: (await admin.roomReading.context(params.roomId, params.eventId, wish)).toBuffer() })
  },
)
