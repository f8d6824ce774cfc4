import { Type } from '../../../core/shapes.ts'
import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { pdusReply } from '../events/pdus-reply.ts'
import { joinReply } from './join-reply.ts'

export const sendJoinV2 = endpoint(
  'PUT F/v2/send_join/{roomId}/{eventId}',
  { auth: 'server', body: AnyObject, query: Type.Object({ omit_members: Type.Optional(Type.Boolean()) }) },
  async ({ requester, params: { roomId, eventId }, query, exactBody, bodyOffence }, { federation, config }) => {
    const event = { value: exactBody, offence: bodyOffence }
    const joined = await federation.handshakes.sendJoin(requester.server, roomId, eventId, event, query.omit_members)
    return pdusReply(...joinReply(joined, config.server_name))
  },
)
