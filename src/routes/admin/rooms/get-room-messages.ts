import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { roomEventFilterOf } from '../../client/rooms/room-event-filter-of.ts'
import { Direction } from './read-query.ts'

const Query = Type.Object({
  dir: Direction,
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  filter: Type.Optional(Type.String()),
})

export const getRoomMessages = endpoint(
  'GET /_synapse/admin/v1/rooms/{roomId}/messages',
  { auth: 'admin', recorded: true, query: Query },
  async ({ params, query }, { admin }) => {
    const { dir: direction = 'f', from, to, limit } = query
    const wish = { direction, from, to, limit, filter: roomEventFilterOf(query.filter) }
    return rawReply({ body: (await admin.roomReading.messages(params.roomId, wish)).toBuffer() })
  },
)
