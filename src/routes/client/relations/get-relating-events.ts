import { endpoint } from '../../../http/endpoint.ts'
import { RELATIONS, relationsReply } from './relations-query.ts'

export const getRelatingEvents = endpoint(
  'GET C1/rooms/{roomId}/relations/{eventId}',
  { ...RELATIONS, also: ['CU/rooms/{roomId}/relations/{eventId}'] },
  ({ requester, params, query }, services) => relationsReply(services, requester, params, query),
)
