import { endpoint } from '../../../http/endpoint.ts'

export const makeLeave = endpoint(
  'GET F/v1/make_leave/{roomId}/{userId}',
  { auth: 'server' },
  async ({ requester, params: { roomId, userId } }, { federation }) => {
    const wanted = { membership: 'leave', userId } as const
    const { roomVersion, event } = await federation.handshakes.make(requester.server, roomId, wanted)
    return { room_version: roomVersion, event }
  },
)
