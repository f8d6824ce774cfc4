import { endpoint } from '../../../http/endpoint.ts'
import { VersionQuery } from './room-keys-shapes.ts'

export const getRoomKeyBySessionId = endpoint(
  'GET C/room_keys/keys/{roomId}/{sessionId}',
  {
    auth: 'user',
    anywhere: true,
    limited: 'other',
    also: ['CU/room_keys/keys/{roomId}/{sessionId}'],
    query: VersionQuery,
  },
  ({ requester, params, query }, { keyBackups }) =>
    keyBackups.getKey(requester.userNid, query.version, params.roomId, params.sessionId),
)
