import { endpoint } from '../../../http/endpoint.ts'
import { ReasonBody } from './reason-body.ts'

export const leaveRoom = endpoint(
  'POST C/rooms/{roomId}/leave',
  { auth: 'user', suspended: true, guests: true, limited: 'other', body: ReasonBody, bodyOptional: true },
  async ({ requester, params, body }, { rooms }) => {
    await rooms.leave(requester, params.roomId, body)
    return {}
  },
)
