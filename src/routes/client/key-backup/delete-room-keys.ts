import { endpoint } from '../../../http/endpoint.ts'
import { VersionQuery } from './room-keys-shapes.ts'

export const deleteRoomKeys = endpoint(
  'DELETE C/room_keys/keys',
  { auth: 'user', suspended: true, limited: 'other', also: ['CU/room_keys/keys'], query: VersionQuery },
  ({ requester, query }, { keyBackups }) => keyBackups.removeKeys(requester.userNid, query.version, {}),
)
