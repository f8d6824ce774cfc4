import { endpoint } from '../../../http/endpoint.ts'

export const getRoomKeysVersion = endpoint(
  'GET C/room_keys/version/{version}',
  { auth: 'user', anywhere: true, limited: 'other', also: ['CU/room_keys/version/{version}'] },
  ({ requester, params }, { keyBackups }) => keyBackups.get(requester.userNid, params.version),
)
