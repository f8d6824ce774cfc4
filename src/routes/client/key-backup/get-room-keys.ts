import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { roomsJson } from './room-keys-json.ts'
import { VersionQuery } from './room-keys-shapes.ts'

export const getRoomKeys = endpoint(
  'GET C/room_keys/keys',
  { auth: 'user', anywhere: true, limited: 'other', also: ['CU/room_keys/keys'], query: VersionQuery },
  async ({ requester, query }, { keyBackups }) => {
    const keys = await keyBackups.getKeys(requester.userNid, query.version)
    return rawReply({ body: roomsJson(keys) })
  },
)
