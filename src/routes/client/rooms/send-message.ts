import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { TsQuery, tsOf } from './ts-query.ts'

export const sendMessage = endpoint(
  'PUT C/rooms/{roomId}/send/{eventType}/{txnId}',
  { auth: 'user', guests: true, limited: 'message', query: TsQuery, body: AnyObject },
  async ({ requester, params, query, exactBody, bodyOffence, path, isOldPath }, { rooms }) => {
    const { roomId, eventType, txnId } = params
    const sent = { content: exactBody, offence: bodyOffence, ...tsOf(requester, query) }
    return { event_id: await rooms.send(requester, roomId, eventType, sent, { txnId, path, ofSession: isOldPath }) }
  },
)
