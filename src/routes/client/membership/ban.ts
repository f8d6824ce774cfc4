import { endpoint } from '../../../http/endpoint.ts'
import { TargetBody } from './reason-body.ts'

export const ban = endpoint(
  'POST C/rooms/{roomId}/ban',
  { auth: 'user', limited: 'other', body: TargetBody },
  async ({ requester, params, body: { user_id: target, ...details } }, { rooms }) => {
    await rooms.ban(requester, params.roomId, target, details)
    return {}
  },
)
