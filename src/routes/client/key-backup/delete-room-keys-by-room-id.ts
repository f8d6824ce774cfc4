import { endpoint } from '../../../http/endpoint.ts'
import { VersionQuery } from './room-keys-shapes.ts'

export const deleteRoomKeysByRoomId = endpoint(
  'DELETE C/room_keys/keys/{roomId}',
  { auth: 'user', suspended: true, limited: 'other', also: ['CU/room_keys/keys/{roomId}'], query: VersionQuery },
  ({ requester, params, query }, { keyBackups }) => keyBackups.removeKeys(requester.userNid, query.version, params),
)
