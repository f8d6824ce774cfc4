import type { RoomId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({ room_id: Type.Unsafe<RoomId>({ type: 'string', format: 'room-id' }) })

export const setRoomAlias = endpoint(
  'PUT C/directory/room/{roomAlias}',
  { auth: 'user', limited: 'other', body: Body },
  async ({ requester, params, body }, { aliases }) => {
    await aliases.create(requester, params.roomAlias, body.room_id)
    return {}
  },
)
