import { AnyObject, endpoint } from '../../../http/endpoint.ts'
import { TsQuery, tsOf } from './ts-query.ts'

export const setRoomStateWithKey = endpoint(
  'PUT C/rooms/{roomId}/state/{eventType}/{stateKey}',
  {
    auth: 'user',
    guests: true,
    limited: 'message',
    also: ['C/rooms/{roomId}/state/{eventType}'],
    query: TsQuery,
    body: AnyObject,
  },
  async ({ requester, params, query, exactBody, bodyOffence }, { rooms }) => {
    const { roomId, eventType, stateKey } = params
    const sent = { content: exactBody, offence: bodyOffence, ...tsOf(requester, query) }
    return { event_id: await rooms.setState(requester, roomId, eventType, stateKey, sent) }
  },
)
