import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { delayOf, SendQuery, sentAt } from './send-query.ts'

export const setRoomStateWithKey = endpoint(
  'PUT C/rooms/{roomId}/state/{eventType}/{stateKey}',
  {
    auth: 'user',
    guests: true,
    limited: 'message',
    also: ['C/rooms/{roomId}/state/{eventType}'],
    query: SendQuery,
    body: AnyObject,
  },
  async ({ requester, params, query, exactBody, bodyOffence }, { rooms, delayedEvents }) => {
    const { roomId, eventType: type, stateKey } = params
    const sent = { content: exactBody, offence: bodyOffence, ...sentAt(requester, query) }
    const delayMs = delayOf(query)
    if (delayMs === undefined) return { event_id: await rooms.setState(requester, roomId, type, stateKey, sent) }
    const wish = { ...sent, roomId, type, stateKey, delayMs, transaction: undefined, isOldForm: true }
    return { delay_id: await delayedEvents.schedule(requester, wish) }
  },
)
