import { endpoint } from '../../../http/endpoint.ts'

export const getRoomKeysVersionCurrent = endpoint(
  'GET C/room_keys/version',
  { auth: 'user', anywhere: true, limited: 'other', also: ['CU/room_keys/version'] },
  ({ requester }, { keyBackups }) => keyBackups.get(requester.userNid),
)
