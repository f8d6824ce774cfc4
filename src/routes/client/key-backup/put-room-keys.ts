import { Type } from '../../../core/shapes.ts'
import type { RoomKeys } from '../../../domain/e2e/key-backups.ts'
import { MAX_KEYS_BODY_BYTES } from '../../../domain/limits.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { RoomKeyBackup, VersionQuery } from './room-keys-shapes.ts'

const Body = Type.Object({
  rooms: Type.Unsafe<RoomKeys>({ type: 'object', additionalProperties: RoomKeyBackup }),
})

export const putRoomKeys = endpoint(
  'PUT C/room_keys/keys',
  {
    auth: 'user',
    suspended: true,
    limited: 'other',
    also: ['CU/room_keys/keys'],
    query: VersionQuery,
    body: Body,
    maxBodyBytes: MAX_KEYS_BODY_BYTES,
  },
  ({ requester, query, body }, { keyBackups }) => keyBackups.putKeys(requester.userNid, query.version, body.rooms),
)
