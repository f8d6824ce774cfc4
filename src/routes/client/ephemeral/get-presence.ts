import { presenceContent } from '../../../domain/sync/presence.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const getPresence = endpoint(
  'GET C/presence/{userId}/status',
  { auth: 'user' },
  async ({ requester, params }, { clock, presence, rooms }) => {
    await rooms.mustShareRoom(requester, params.userId)
    return presenceContent(presence.of(params.userId), clock.now())
  },
)
