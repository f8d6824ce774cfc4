import { endpoint } from '../../../http/endpoint.ts'
import { KeyData, VersionQuery } from './room-keys-shapes.ts'

export const putRoomKeyBySessionId = endpoint(
  'PUT C/room_keys/keys/{roomId}/{sessionId}',
  {
    auth: 'user',
    suspended: true,
    limited: 'other',
    also: ['CU/room_keys/keys/{roomId}/{sessionId}'],
    query: VersionQuery,
    body: KeyData,
  },
  ({ requester, params, query, body }, { keyBackups }) =>
    keyBackups.putKeys(requester.userNid, query.version, {
      [params.roomId]: { sessions: { [params.sessionId]: body } },
    }),
)
