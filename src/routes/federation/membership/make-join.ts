import { endpoint } from '../../../http/endpoint.ts'
import { OLDEST_VERSION, TemplateQuery } from './template-query.ts'

export const makeJoin = endpoint(
  'GET F/v1/make_join/{roomId}/{userId}',
  { auth: 'server', query: TemplateQuery },
  async ({ requester, params: { roomId, userId }, query }, { federation }) => {
    const wanted = { membership: 'join', userId, versions: query.ver ?? OLDEST_VERSION } as const
    const { roomVersion, event } = await federation.handshakes.make(requester.server, roomId, wanted)
    return { room_version: roomVersion, event }
  },
)
