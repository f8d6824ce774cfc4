import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { pdusReplyV1 } from '../events/pdus-reply.ts'
import { joinReply } from './join-reply.ts'

export const sendJoinV1 = endpoint(
  'PUT F/v1/send_join/{roomId}/{eventId}',
  { auth: 'server', body: AnyObject },
  async ({ requester, params: { roomId, eventId }, exactBody, bodyOffence }, { federation, config }) => {
    const event = { value: exactBody, offence: bodyOffence }
    const joined = await federation.handshakes.sendJoin(requester.server, roomId, eventId, event)
    return pdusReplyV1(...joinReply(joined, config.server_name))
  },
)
