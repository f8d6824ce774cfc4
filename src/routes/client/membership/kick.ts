import { endpoint } from '../../../http/endpoint.ts'
import { TargetBody } from './reason-body.ts'

export const kick = endpoint(
  'POST C/rooms/{roomId}/kick',
  { auth: 'user', limited: 'other', body: TargetBody },
  async ({ requester, params, body: { user_id: target, ...details } }, { rooms }) => {
    await rooms.kick(requester, params.roomId, target, details)
    return {}
  },
)
