import { AnyObject, endpoint } from '../../http/endpoint.ts'

export const sendMessage = endpoint(
  'PUT C/rooms/{roomId}/send/{eventType}/{txnId}',
  { auth: 'user', guests: true, limited: 'message', body: AnyObject },
  async ({ requester, params, body, bodyOffence, path }, { rooms }) => {
    const { roomId, eventType, txnId } = params
    const sent = { content: body, offence: bodyOffence }
    return { event_id: await rooms.send(requester, roomId, eventType, sent, { txnId, path }) }
  },
)
