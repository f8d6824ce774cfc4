import type { UserId } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import { requireLocal } from '../../../domain/admin/local-account.ts'
import { checkText } from '../../../domain/text.ts'
import { endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  new_room_user_id: Type.Optional(Type.Unsafe<UserId>({ type: 'string', format: 'user-id' })),
  room_name: Type.Optional(Type.String()),
  message: Type.Optional(Type.String()),
  block: Type.Optional(Type.Boolean()),
  purge: Type.Optional(Type.Boolean()),
  force_purge: Type.Optional(Type.Boolean()),
})

const MAX_NAME_CHARS = 256
const MAX_MESSAGE_CHARS = 10_000

export const deleteRoom = endpoint(
  'DELETE /_synapse/admin/v2/rooms/{roomId}',
  { auth: 'admin', body: Body },
  async ({ requester, params, body }, { admin, config }) => {
    const { new_room_user_id: maker, room_name, message, block = false, purge = true, force_purge = false } = body
    if (maker !== undefined) requireLocal(maker, config.server_name)
    checkText('room_name', room_name ?? '', MAX_NAME_CHARS)
    checkText('message', message ?? '', MAX_MESSAGE_CHARS)
    const id = await admin.roomDeletions.begin(requester.name, params.roomId, {
      newRoomUserId: maker,
      roomName: room_name ?? 'Content Violation Notification',
      message: message ?? 'The administrators of this server have removed the room that you were in.',
      block,
      purge,
      forcePurge: force_purge,
    })
    return { delete_id: id }
  },
)
