import { endpoint } from '../../../http/endpoint.ts'
import { RELATIONS, relationsReply } from './relations-query.ts'

export const getRelatingEventsWithRelType = endpoint(
  'GET C1/rooms/{roomId}/relations/{eventId}/{relType}',
  { ...RELATIONS, also: ['CU/rooms/{roomId}/relations/{eventId}/{relType}'] },
  ({ requester, params, query }, services) => relationsReply(services, requester, params, query),
)
