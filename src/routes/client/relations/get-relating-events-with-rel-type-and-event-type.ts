import { endpoint } from '../../../http/endpoint.ts'
import { RELATIONS, relationsReply } from './relations-query.ts'

export const getRelatingEventsWithRelTypeAndEventType = endpoint(
  'GET C1/rooms/{roomId}/relations/{eventId}/{relType}/{eventType}',
  { ...RELATIONS, also: ['CU/rooms/{roomId}/relations/{eventId}/{relType}/{eventType}'] },
  ({ requester, params, query }, services) => relationsReply(services, requester, params, query),
)
