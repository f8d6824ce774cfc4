import type { UserRooms } from '../../sync/user-rooms.ts'
import type { RoomBlocks } from '../room/blocks.ts'
import type { NoticeRooms } from '../room/notice-rooms.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { ClosedRooms } from '../write/closed-rooms.ts'
import type { MembershipActions } from './membership.ts'
import type { Successions } from './upgrade/successions.ts'
import type { Upgrades } from './upgrade/upgrades.ts'

/**
 * Membership changes with the restrictions of operators: nobody enters a blocked room or one that is being removed, and nobody leaves a
 * notices room with unread notices. Who enters a room that replaces another finds it ready, and their settings in it.
 */
export function createGuardedMembership(parts: {
  readonly membership: MembershipActions
  readonly closed: ClosedRooms
  readonly blocks: RoomBlocks
  readonly noticeRooms: NoticeRooms
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly userRooms: Pick<UserRooms, 'forgotten'>
  readonly upgrades: Pick<Upgrades, 'untilOpen'>
  readonly successions: Pick<Successions, 'settled'>
}): MembershipActions {
  const { membership, closed, blocks, noticeRooms, registry, userRooms, upgrades, successions } = parts
  return {
    ...membership,
    async join(by, roomId, details) {
      // A join through another server would bring the room back while its rows are being deleted.
      closed.mustBeOpen(roomId)
      await blocks.mustBeFree(roomId)
      await upgrades.untilOpen(roomId)
      await membership.join(by, roomId, details)
      await successions.settled(by.userNid, roomId)
    },
    async knock(by, roomId, details) {
      closed.mustBeOpen(roomId)
      await blocks.mustBeFree(roomId)
      await membership.knock(by, roomId, details)
    },
    async leave(by, roomId, details) {
      await noticeRooms.mayLeave(by, roomId)
      await membership.leave(by, roomId, details)
    },
    async invite(by, roomId, target, details) {
      await blocks.mustBeFree(roomId)
      await membership.invite(by, roomId, target, details)
    },
    async forget(by, roomId) {
      await membership.forget(by, roomId)
      const room = await registry.get(roomId)
      if (room) userRooms.forgotten(by.userNid, room.nid)
    },
  }
}
