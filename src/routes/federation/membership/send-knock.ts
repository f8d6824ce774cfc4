import { AnyObject, endpoint } from '../../../http/endpoint.ts'

export const sendKnock = endpoint(
  'PUT F/v1/send_knock/{roomId}/{eventId}',
  { auth: 'server', body: AnyObject },
  async ({ requester, params: { roomId, eventId }, exactBody, bodyOffence }, { federation }) => {
    const event = { value: exactBody, offence: bodyOffence }
    return { knock_room_state: await federation.handshakes.sendKnock(requester.server, roomId, eventId, event) }
  },
)
