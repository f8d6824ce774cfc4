import { ProtocolError } from '../../../../core/errors.ts'
import { membershipOf } from '../../../../core/event/content.ts'
import { type RoomId, type ServerName, serverOf, type UserId } from '../../../../core/ids.ts'
import type { JsonObject } from '../../../../core/json.ts'
import type { Database } from '../../../../store/db/db.ts'
import { redirectAliases } from '../../../../store/rooms/aliases.ts'
import { unpublishRoom } from '../../../../store/rooms/published-rooms.ts'
import {
  beginMoving,
  type DeletionRow,
  findDeletion,
  noteAliases,
  noteMoved,
  setNewRoom,
} from '../../../../store/rooms/room-deletions.ts'
import { findRoomNid, getMembers } from '../../../../store/rooms/rooms.ts'
import type { Requester } from '../../../accounts/requester.ts'
import type { Users } from '../../../users.ts'
import type { Room } from '../../room/room.ts'
import type { Appender } from '../../write/append.ts'
import type { Draft } from '../../write/draft.ts'
import type { Rooms } from '../rooms.ts'

/** Makes the users of this server leave a closed room, each by a leave event of their own, and moves them into another if requested. */
export interface Evacuation {
  /**
   * Continues where an earlier run stopped.
   *
   * @param isOver asked between steps; when it returns true, this resolves early
   */
  run(deletion: DeletionRow, isOver: () => boolean): Promise<void>
  /** Users of this server who are still in the room, invited to it or knocking. */
  remaining(roomNid: number): Promise<UserId[]>
  /** Whether users of other servers are in the room. */
  isShared(roomNid: number): Promise<boolean>
}

export interface EvacuationParts {
  readonly serverName: ServerName
  readonly db: Database
  readonly users: Users
  /** An appender that also writes in closed rooms. */
  readonly appender: Appender
  readonly rooms: Pick<Rooms, 'create'>
}

const USERS_AT_ONCE = 50
/** The users of the new room can only read. */
const READERS_LEVEL = -10

export function createEvacuation(parts: EvacuationParts): Evacuation {
  const { db, appender, users, serverName } = parts

  async function remaining(roomNid: number): Promise<UserId[]> {
    const members = await getMembers(db, roomNid, ['join', 'invite', 'knock'])
    return members.map(({ user_id }) => user_id).filter((userId) => serverOf(userId) === serverName)
  }

  async function requesterOf(userId: UserId): Promise<Requester> {
    const userNid = (await users.intern([userId])).get(userId)!
    return { userId, userNid, deviceId: '', tokenNid: 0, isGuest: false }
  }

  /** The room that replaces the old one. If a crash came between creating it and noting it, a room stays behind with only its creator. */
  async function newRoomOf(deletion: DeletionRow): Promise<RoomId | undefined> {
    const { newRoomUserId, roomName, message } = deletion.request
    if (newRoomUserId === undefined || deletion.new_room_id !== null) return deletion.new_room_id ?? undefined
    const maker = await requesterOf(newRoomUserId)
    const levels = { users_default: READERS_LEVEL }
    const request = { preset: 'private_chat', name: roomName, power_level_content_override: levels } as const
    const { roomId } = await parts.rooms.create(maker, request, undefined)
    const content = { msgtype: 'm.text', body: message }
    const said: Draft = { type: 'm.room.message', content, sender: maker.userId, senderNid: maker.userNid }
    await appender.append(roomId, () => [said])
    await db.tx((tx) => setNewRoom(tx, deletion.deletion_id, roomId))
    return roomId
  }

  async function membersOf(deletion: DeletionRow): Promise<readonly UserId[]> {
    if (deletion.members !== null) return deletion.members
    const members = await remaining(deletion.room_nid)
    await db.tx((tx) => beginMoving(tx, deletion.deletion_id, members))
    return members
  }

  /** Moves those who are in the old room into the new one. Users who are there already stay. */
  async function settle(batch: readonly UserId[], from: RoomId, to: RoomId, maker: Requester): Promise<void> {
    const nids = await users.intern(batch)
    const joined = new Set<UserId>()
    await appender.append(from, async (room) => {
      for (const userId of batch) if ((await membershipIn(room, userId)) === 'join') joined.add(userId)
      return []
    })
    await appender.append(to, async (room) => {
      const drafts: Draft[] = []
      for (const userId of joined) {
        const before = await membershipIn(room, userId)
        if (before === 'join' || before === 'ban') continue
        if (before !== 'invite') drafts.push(member(userId, { membership: 'invite' }, maker))
        drafts.push(member(userId, { membership: 'join' }, { userId, userNid: nids.get(userId)! }))
      }
      return drafts
    })
  }

  async function putOut(batch: readonly UserId[], roomId: RoomId): Promise<void> {
    const nids = await users.intern(batch)
    await appender.append(roomId, async (room) => {
      const drafts: Draft[] = []
      for (const userId of batch) {
        const before = await membershipIn(room, userId)
        if (before !== 'join' && before !== 'invite' && before !== 'knock') continue
        drafts.push(member(userId, { membership: 'leave' }, { userId, userNid: nids.get(userId)! }))
      }
      return drafts
    })
  }

  /** Returns the users for whom it failed. One user's refusal does not affect the others. */
  async function move(batch: readonly UserId[], work: (some: readonly UserId[]) => Promise<void>): Promise<UserId[]> {
    try {
      await work(batch)
      return []
    } catch (error) {
      if (!isRefusal(error)) throw error
      if (batch.length === 1) return [...batch]
    }
    const failed: UserId[] = []
    for (const userId of batch) failed.push(...(await move([userId], work)))
    return failed
  }

  async function moveNames({ deletion_id, room_nid }: DeletionRow, newRoom: RoomId | undefined): Promise<void> {
    const to = newRoom === undefined ? undefined : await findRoomNid(db, newRoom)
    await db.tx(async (tx) => {
      const aliases = await redirectAliases(tx, room_nid, to)
      await noteAliases(tx, deletion_id, aliases)
      await unpublishRoom(tx, room_nid)
    })
  }

  return {
    remaining,
    async isShared(roomNid) {
      return (await getMembers(db, roomNid, ['join'])).some(({ user_id }) => serverOf(user_id) !== serverName)
    },
    async run(deletion, isOver) {
      const { deletion_id: id, room_id: roomId, request } = deletion
      const members = await membersOf(deletion)
      const newRoom = await newRoomOf(deletion)
      await moveNames(deletion, newRoom)
      const maker = request.newRoomUserId === undefined ? undefined : await requesterOf(request.newRoomUserId)
      for (let at = deletion.moved; at < members.length && !isOver(); at += USERS_AT_ONCE) {
        const batch = members.slice(at, at + USERS_AT_ONCE)
        const failed = await move(batch, async (some) => {
          if (newRoom && maker) await settle(some, roomId, newRoom, maker)
          await putOut(some, roomId)
        })
        await db.tx((tx) => noteMoved(tx, id, at + batch.length, failed))
      }
      if (isOver()) return
      // Adds users who came in while the room was being closed.
      const listed = new Set([...members, ...((await findDeletion(db, id))?.failed ?? [])])
      const late = (await remaining(deletion.room_nid)).filter((userId) => !listed.has(userId))
      if (late.length > 0) await move(late, (some) => putOut(some, roomId))
    },
  }
}

async function membershipIn(room: Room, userId: UserId) {
  return membershipOf(await room.stateEvent('m.room.member', userId, room.pending.state))
}

function member(target: UserId, content: JsonObject, by: Pick<Requester, 'userId' | 'userNid'>): Draft {
  return { type: 'm.room.member', stateKey: target, content, sender: by.userId, senderNid: by.userNid }
}

/** Whether the auth rules or the room refused it, and not, for example, the database. */
function isRefusal(error: unknown): boolean {
  return error instanceof ProtocolError && error.status < 500
}
