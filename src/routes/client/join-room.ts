import { endpoint } from '../../http/endpoint.ts'
import { JoinBody } from './reason-body.ts'

export const joinRoom = endpoint(
  'POST C/join/{roomIdOrAlias}',
  { auth: 'user', guests: true, limited: 'join', body: JoinBody, bodyOptional: true },
  async ({ requester, params, body }, { aliases, rooms }) => {
    const roomId = await aliases.roomOf(params.roomIdOrAlias)
    await rooms.join(requester, roomId, body)
    return { room_id: roomId }
  },
)
