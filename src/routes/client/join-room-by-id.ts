import { endpoint } from '../../http/endpoint.ts'
import { JoinBody } from './reason-body.ts'

export const joinRoomById = endpoint(
  'POST C/rooms/{roomId}/join',
  { auth: 'user', guests: true, limited: 'join', body: JoinBody, bodyOptional: true },
  async ({ requester, params: { roomId }, body }, { rooms }) => {
    await rooms.join(requester, roomId, body)
    return { room_id: roomId }
  },
)
