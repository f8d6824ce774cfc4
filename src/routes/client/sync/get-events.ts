import { ProtocolError } from '../../../core/errors.ts'
import { isRoomId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

const Query = Type.Object({
  from: Type.Optional(Type.String()),
  timeout: Type.Optional(Type.Integer({ minimum: 0 })),
  room_id: Type.Optional(Type.String()),
})

export const getEvents = endpoint(
  'GET C/events',
  { auth: 'user', guests: true, query: Query },
  async ({ requester, query, signal }, { eventStream, sync }) => {
    const { from, timeout: timeoutMs = 0, room_id: roomId } = query
    if (roomId !== undefined && !isRoomId(roomId)) {
      throw new ProtocolError('M_INVALID_PARAM', '`room_id` is not a room id.')
    }
    return rawReply(sync.send(requester, await eventStream.events(requester, { from, timeoutMs, roomId, signal })))
  },
)
