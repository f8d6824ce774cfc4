import { AnyObject, endpoint } from '../../http/endpoint.ts'

export const setRoomStateWithKey = endpoint(
  'PUT C/rooms/{roomId}/state/{eventType}/{stateKey}',
  { auth: 'user', guests: true, limited: 'message', also: ['C/rooms/{roomId}/state/{eventType}'], body: AnyObject },
  async ({ requester, params, body, bodyOffence }, { rooms }) => {
    const { roomId, eventType, stateKey } = params
    const sent = { content: body, offence: bodyOffence }
    return { event_id: await rooms.setState(requester, roomId, eventType, stateKey, sent) }
  },
)
