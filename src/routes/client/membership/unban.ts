import { endpoint } from '../../../http/endpoint.ts'
import { TargetBody } from './reason-body.ts'

export const unban = endpoint(
  'POST C/rooms/{roomId}/unban',
  { auth: 'user', limited: 'other', body: TargetBody },
  async ({ requester, params, body: { user_id: target, ...details } }, { rooms }) => {
    await rooms.unban(requester, params.roomId, target, details)
    return {}
  },
)
