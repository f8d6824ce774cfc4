import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { delayOf, MessageQuery, sentAt, stickyOf } from './send-query.ts'

export const sendMessage = endpoint(
  'PUT C/rooms/{roomId}/send/{eventType}/{txnId}',
  { auth: 'user', guests: true, limited: 'message', batched: true, query: MessageQuery, body: AnyObject },
  async ({ requester, params, query, exactBody, bodyOffence, path, isOldPath }, { rooms, delayedEvents }) => {
    const { roomId, eventType: type, txnId } = params
    const sent = { content: exactBody, offence: bodyOffence, ...sentAt(requester, query), ...stickyOf(query) }
    const transaction = { txnId, path, ofSession: isOldPath }
    const delayMs = delayOf(query)
    if (delayMs === undefined) return { event_id: await rooms.send(requester, roomId, type, sent, transaction) }
    const wish = { ...sent, roomId, type, stateKey: undefined, delayMs, transaction, isOldForm: true }
    return { delay_id: await delayedEvents.schedule(requester, wish) }
  },
)
