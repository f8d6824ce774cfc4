import { AnyObject, endpoint } from '../../../http/endpoint.ts'

/** Without a transaction id: each call is a new redaction. */
export const postRedaction = endpoint(
  'POST C/rooms/{roomId}/redact/{eventId}',
  { auth: 'user', suspended: true, guests: true, limited: 'message', body: AnyObject, bodyOptional: true },
  async ({ requester, params: { roomId, eventId }, exactBody, bodyOffence }, { rooms }) => {
    const sent = { content: exactBody, offence: bodyOffence }
    return { event_id: await rooms.redact(requester, roomId, eventId, sent, undefined) }
  },
)
