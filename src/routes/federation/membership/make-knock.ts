import { endpoint } from '../../../http/endpoint.ts'
import { OLDEST_VERSION, TemplateQuery } from './template-query.ts'

export const makeKnock = endpoint(
  'GET F/v1/make_knock/{roomId}/{userId}',
  { auth: 'server', query: TemplateQuery },
  async ({ requester, params: { roomId, userId }, query }, { federation }) => {
    const wanted = { membership: 'knock', userId, versions: query.ver ?? OLDEST_VERSION } as const
    const { roomVersion, event } = await federation.handshakes.make(requester.server, roomId, wanted)
    return { room_version: roomVersion, event }
  },
)
