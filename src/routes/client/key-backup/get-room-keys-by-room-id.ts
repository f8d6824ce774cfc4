import { endpoint, rawReply } from '../../../http/endpoint.ts'
import { sessionsJson } from './room-keys-json.ts'
import { VersionQuery } from './room-keys-shapes.ts'

export const getRoomKeysByRoomId = endpoint(
  'GET C/room_keys/keys/{roomId}',
  { auth: 'user', anywhere: true, limited: 'other', also: ['CU/room_keys/keys/{roomId}'], query: VersionQuery },
  async ({ requester, params, query }, { keyBackups }) => {
    const keys = await keyBackups.getKeys(requester.userNid, query.version, params.roomId)
    return rawReply({ body: sessionsJson(keys) })
  },
)
