import { endpoint } from '../../../http/endpoint.ts'

export const deleteRoomKeysVersion = endpoint(
  'DELETE C/room_keys/version/{version}',
  { auth: 'user', suspended: true, limited: 'other', also: ['CU/room_keys/version/{version}'] },
  async ({ requester, params }, { keyBackups }) => {
    await keyBackups.remove(requester.userNid, params.version)
    return {}
  },
)
