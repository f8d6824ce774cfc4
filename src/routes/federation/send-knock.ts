import { AnyObject, endpoint } from '../../http/endpoint.ts'

export const sendKnock = endpoint(
  'PUT F/v1/send_knock/{roomId}/{eventId}',
  { auth: 'server', body: AnyObject },
  async ({ requester, params: { roomId, eventId }, body, bodyOffence }, { federation }) => {
    const event = { value: body, offence: bodyOffence }
    return { knock_room_state: await federation.handshakes.sendKnock(requester.server, roomId, eventId, event) }
  },
)
