import { endpoint } from '../../../http/endpoint.ts'
import { pdusReply } from './pdus-reply.ts'

export const getEventAuthorization = endpoint(
  'GET F/v1/event_auth/{roomId}/{eventId}',
  { auth: 'server' },
  async ({ requester, params: { roomId, eventId } }, { federation }) =>
    pdusReply({ auth_chain: await federation.roomAnswers.authChain(requester.server, roomId, eventId) }),
)
