import { AnyObject, endpoint } from '../../../http/endpoint.ts'

export const redactEvent = endpoint(
  'PUT C/rooms/{roomId}/redact/{eventId}/{txnId}',
  { auth: 'user', suspended: true, guests: true, limited: 'message', body: AnyObject, bodyOptional: true },
  async ({ requester, params, exactBody, bodyOffence, path, isOldPath }, { rooms }) => {
    const { roomId, eventId, txnId } = params
    const sent = { content: exactBody, offence: bodyOffence }
    return { event_id: await rooms.redact(requester, roomId, eventId, sent, { txnId, path, ofSession: isOldPath }) }
  },
)
