import { AnyObject, endpoint } from '../../../http/endpoint.ts'

export const sendLeaveV2 = endpoint(
  'PUT F/v2/send_leave/{roomId}/{eventId}',
  { auth: 'server', body: AnyObject },
  async ({ requester, params: { roomId, eventId }, exactBody, bodyOffence }, { federation }) => {
    const event = { value: exactBody, offence: bodyOffence }
    await federation.handshakes.sendLeave(requester.server, roomId, eventId, event)
    return {}
  },
)
