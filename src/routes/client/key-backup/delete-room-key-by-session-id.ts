import { endpoint } from '../../../http/endpoint.ts'
import { VersionQuery } from './room-keys-shapes.ts'

export const deleteRoomKeyBySessionId = endpoint(
  'DELETE C/room_keys/keys/{roomId}/{sessionId}',
  {
    auth: 'user',
    suspended: true,
    limited: 'other',
    also: ['CU/room_keys/keys/{roomId}/{sessionId}'],
    query: VersionQuery,
  },
  ({ requester, params, query }, { keyBackups }) => keyBackups.removeKeys(requester.userNid, query.version, params),
)
