import type { ServerName, UserId } from '../../../core/ids.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import { requireLocal } from '../../../domain/admin/local-account.ts'
import { checkText } from '../../../domain/text.ts'

/** How a room is to be removed. */
export const RemovalBody = Type.Object({
  new_room_user_id: Type.Optional(Type.Unsafe<UserId>({ type: 'string', format: 'user-id' })),
  room_name: Type.Optional(Type.String()),
  message: Type.Optional(Type.String()),
  block: Type.Optional(Type.Boolean()),
  purge: Type.Optional(Type.Boolean()),
  force_purge: Type.Optional(Type.Boolean()),
})

const MAX_NAME_CHARS = 256
const MAX_MESSAGE_CHARS = 10_000

export function removalOf(body: Static<typeof RemovalBody>, serverName: ServerName) {
  const { new_room_user_id: maker, room_name, message, block = false, purge = true, force_purge = false } = body
  if (maker !== undefined) requireLocal(maker, serverName)
  checkText('room_name', room_name ?? '', MAX_NAME_CHARS)
  checkText('message', message ?? '', MAX_MESSAGE_CHARS)
  return {
    newRoomUserId: maker,
    roomName: room_name ?? 'Content Violation Notification',
    message: message ?? 'The administrators of this server have removed the room that you were in.',
    block,
    purge,
    forcePurge: force_purge,
  }
}
