import { ProtocolError } from '../../../core/errors.ts'
import type { UserId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({ user_id: Type.Optional(Type.Unsafe<UserId>({ type: 'string', format: 'user-id' })) })

export const makeRoomAdmin = endpoint(
  'POST /_synapse/admin/v1/rooms/{roomIdOrAlias}/make_room_admin',
  { auth: 'admin', grave: true, body: Body, bodyOptional: true },
  async ({ requester, params, body }, { admin, aliases }) => {
    const userId = body.user_id ?? requester.requester?.userId
    if (userId === undefined) throw new ProtocolError('M_MISSING_PARAM', "Key 'user_id' is missing.")
    await admin.roomPower.makeAdmin((await aliases.targetOf(params.roomIdOrAlias)).room_id, userId)
    return {}
  },
)
