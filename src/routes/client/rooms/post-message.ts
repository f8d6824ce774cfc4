import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { TsQuery, tsOf } from './ts-query.ts'

/** Without a transaction id: each call is a new event. Old clients and scripts send so. */
export const postMessage = endpoint(
  'POST C/rooms/{roomId}/send/{eventType}',
  { auth: 'user', guests: true, limited: 'message', query: TsQuery, body: AnyObject },
  async ({ requester, params: { roomId, eventType }, query, exactBody, bodyOffence }, { rooms }) => {
    const sent = { content: exactBody, offence: bodyOffence, ...tsOf(requester, query) }
    return { event_id: await rooms.send(requester, roomId, eventType, sent, undefined) }
  },
)
