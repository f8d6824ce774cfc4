import { endpoint } from '../../../http/endpoint.ts'
import { JoinBody, joinDetailsOf } from './reason-body.ts'
import { ViaQuery, viaOf } from './via-query.ts'

export const joinRoomById = endpoint(
  'POST C/rooms/{roomId}/join',
  { auth: 'user', guests: true, limited: 'join', query: ViaQuery, body: JoinBody, bodyOptional: true },
  async ({ requester, params: { roomId }, query, body, bodyOffence }, { rooms }) => {
    await rooms.join(requester, roomId, { ...joinDetailsOf(body, bodyOffence), via: viaOf(query) })
    return { room_id: roomId }
  },
)
