import type { Config } from '../../../config/schema.ts'
import { ProtocolError } from '../../../core/errors.ts'
import { type RoomId, type UserId, userId } from '../../../core/ids.ts'
import type { Reader } from '../../../store/db/db.ts'
import { hasReadAll } from '../../../store/events/receipts.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { RoomRegistry } from './registry.ts'

/** The user who sends server notices; undefined when they are off. */
export function noticesUser(config: Pick<Config, 'server_name' | 'server_notices'>): UserId | undefined {
  const { localpart } = config.server_notices
  return localpart === undefined ? undefined : userId(localpart, config.server_name)
}

/**
 * The rooms in which the server sends notices to its users (client-server API, "Server Notices"). A user cannot leave or reject one without
 * having read it.
 */
export interface NoticeRooms {
  /** @throws ProtocolError `M_CANNOT_LEAVE_SERVER_NOTICE_ROOM` while a notice has no receipt by this user */
  mayLeave(by: Requester, roomId: RoomId): Promise<void>
}

export function createNoticeRooms(deps: {
  readonly config: Pick<Config, 'server_name' | 'server_notices'>
  readonly db: Reader
  readonly registry: RoomRegistry
}): NoticeRooms {
  const speaker = noticesUser(deps.config)
  if (speaker === undefined) return { mayLeave: async () => {} }
  return {
    async mayLeave(by, roomId) {
      // Deactivation takes a user out of rooms without a login.
      if (by.userId === speaker || by.tokenNid === 0) return
      const room = await deps.registry.get(roomId)
      // Nobody else acts for this user, so it created the room.
      const create = await room?.stateEvent('m.room.create', '')
      if (!room || create?.sender !== speaker) return
      if (await hasReadAll(deps.db, { roomNid: room.nid, userNid: by.userNid, senderNid: create.senderNid })) return
      const message = 'In this room the server tells you what you have to know: read it before you leave.'
      throw new ProtocolError('M_CANNOT_LEAVE_SERVER_NOTICE_ROOM', message)
    },
  }
}
