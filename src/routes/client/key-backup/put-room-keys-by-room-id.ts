import { MAX_KEYS_BODY_BYTES } from '../../../domain/limits.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { RoomKeyBackup, VersionQuery } from './room-keys-shapes.ts'

export const putRoomKeysByRoomId = endpoint(
  'PUT C/room_keys/keys/{roomId}',
  {
    auth: 'user',
    suspended: true,
    limited: 'other',
    also: ['CU/room_keys/keys/{roomId}'],
    query: VersionQuery,
    body: RoomKeyBackup,
    maxBodyBytes: MAX_KEYS_BODY_BYTES,
  },
  ({ requester, params, query, body }, { keyBackups }) =>
    keyBackups.putKeys(requester.userNid, query.version, { [params.roomId]: body }),
)
