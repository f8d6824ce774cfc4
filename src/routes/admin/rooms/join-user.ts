import type { UserId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const joinUser = endpoint(
  'POST /_synapse/admin/v1/join/{roomIdOrAlias}',
  { auth: 'admin', body: Type.Object({ user_id: Type.Unsafe<UserId>({ type: 'string', format: 'user-id' }) }) },
  async ({ requester, params, body }, { admin, aliases }) => {
    const roomId = (await aliases.targetOf(params.roomIdOrAlias)).room_id
    await admin.roomPower.join(requester, roomId, body.user_id)
    return { room_id: roomId }
  },
)
