import { endpoint } from '../../http/endpoint.ts'
import { TargetBody } from './reason-body.ts'

export const inviteUser = endpoint(
  'POST C/rooms/{roomId}/invite',
  { auth: 'user', limited: 'invite', body: TargetBody },
  async ({ requester, params, body: { user_id: target, ...details } }, { rooms }) => {
    await rooms.invite(requester, params.roomId, target, details)
    return {}
  },
)
