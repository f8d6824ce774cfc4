import type { Logger } from 'pino'
import { ProtocolError } from '../../../../core/errors.ts'
import { isUserId, type RoomId } from '../../../../core/ids.ts'
import { createKeyedQueue } from '../../../../core/keyed-queue.ts'
import { type RoomVersion, roomVersion } from '../../../../core/room-version.ts'
import { getAliasesOfRoom } from '../../../../store/rooms/aliases.ts'
import {
  deleteUpgrade,
  insertUpgrade,
  openUpgrades,
  type UpgradeRow,
  upgradesOfRoom,
} from '../../../../store/rooms/room-upgrades.ts'
import { nextRoomNid } from '../../../../store/rooms/rooms.ts'
import type { Requester } from '../../../accounts/requester.ts'
import { MAX_ADDITIONAL_CREATORS } from '../../../limits/room-upgrades.ts'
import { mustBeMember } from '../../room/not-in-room.ts'
import type { Room } from '../../room/room.ts'
import { wholeRoom } from '../../room/whole-room.ts'
import { createReplacementMaker, type ReplacementParts } from './make-replacement.ts'
import { endRoom, mustBeAbleToEnd, tombstoneFor } from './tombstone.ts'

/** What to make of a room. */
export interface UpgradeRequest {
  readonly version: string
  /** Creators beside the user who upgrades, in versions that have them. */
  readonly additionalCreators: readonly string[]
}

/** Replaces rooms by rooms of another version (client-server API, "Room Upgrades"). */
export interface Upgrades {
  /**
   * Ends a room with a tombstone and makes the room that replaces it. The same request again gives the same room, as long as anybody is in
   * it. A crash in between leaves a job that the next start completes.
   *
   * @returns the id of the new room
   * @throws ProtocolError `M_UNSUPPORTED_ROOM_VERSION`, `M_FORBIDDEN`, `M_INVALID_PARAM` for creators who are no users
   */
  upgrade(by: Requester, roomId: RoomId, request: UpgradeRequest): Promise<RoomId>
  /** Resolves once a room that is just being made by an upgrade is ready to be joined; at once for all others. */
  untilOpen(roomId: RoomId): Promise<void>
  /** Completes what earlier processes began. @param isOver asked between upgrades */
  runAll(isOver: () => boolean): Promise<void>
}

export interface UpgradeParts extends ReplacementParts {
  readonly log: Logger
}

const UPGRADES_AT_ONCE = 100

export function createUpgrades(parts: UpgradeParts): Upgrades {
  const { db, registry, appender, clock, users, log } = parts
  const replacement = createReplacementMaker(parts)
  // Upgrades of one room come one after another.
  const queue = createKeyedQueue<number>()
  const opening = new Map<RoomId, Promise<void>>()

  async function roomOf(by: Requester, roomId: RoomId): Promise<Room> {
    return wholeRoom(registry, mustBeMember(await registry.get(roomId), by))
  }

  /** An upgrade that did what is requested, and whose room is in use or not finished yet. */
  async function sameUpgrade(room: Room, version: RoomVersion, creators: readonly string[]) {
    for (const row of await upgradesOfRoom(db, room.nid)) {
      if (row.room_version !== version.id || !(await tombstoneFor(room, row.new_room_id))) continue
      if (JSON.stringify(row.creation.additional_creators ?? []) !== JSON.stringify(creators)) continue
      const made = row.is_done ? await registry.get(row.new_room_id) : undefined
      if (!row.is_done || (made && made.counts.join > 0)) return row
    }
    return undefined
  }

  async function begin(by: Requester, room: Room, version: RoomVersion, creators: readonly string[]) {
    const upgrade = await replacement.design(by, room, version, creators, {
      nid: await nextRoomNid(db),
      ts: clock.now(),
    })
    await db.tx((tx) => insertUpgrade(tx, upgrade))
    const aliases = (await getAliasesOfRoom(db, room.nid)).map(({ alias }) => alias)
    const upgrader = { sender: by.userId, senderNid: by.userNid }
    try {
      await endRoom(appender, room.id, upgrader, { newRoomId: upgrade.new_room_id, aliases })
    } catch (error) {
      if (error instanceof ProtocolError && error.status < 500) {
        await db.tx((tx) => deleteUpgrade(tx, upgrade.new_room_nid))
      }
      throw error
    }
    return upgrade
  }

  /** Makes the new room, as far as it is not made. Who joins it meanwhile waits. */
  function complete(row: Pick<UpgradeRow, 'new_room_id'>, work: () => Promise<void>): Promise<void> {
    const { new_room_id: roomId } = row
    const made = work().finally(() => opening.delete(roomId))
    opening.set(roomId, made)
    return made
  }

  async function proceed(row: Omit<UpgradeRow, 'closing_nid' | 'is_done'>): Promise<void> {
    const senderNid = (await users.intern([row.user_id])).get(row.user_id)!
    await complete(row, () => replacement.make({ ...row, sender: row.user_id, senderNid }))
  }

  /** Continues an upgrade of an earlier process. If that did not come as far as the tombstone, nothing has happened. */
  async function resume(row: UpgradeRow): Promise<void> {
    const isOpen = (await upgradesOfRoom(db, row.room_nid)).some(
      (one) => one.new_room_nid === row.new_room_nid && !one.is_done,
    )
    if (!isOpen) return
    const room = await registry.getByNid(row.room_nid)
    if (await tombstoneFor(room, row.new_room_id)) return proceed(row)
    await db.tx((tx) => deleteUpgrade(tx, row.new_room_nid))
  }

  return {
    async upgrade(by, roomId, { version: id, additionalCreators }) {
      const version = roomVersion(id)
      if (!version)
        throw new ProtocolError('M_UNSUPPORTED_ROOM_VERSION', `This server makes no rooms of version ${id}.`)
      const creators = version.creatorsAreInfinite ? checkedCreators(additionalCreators) : []
      const { nid } = await roomOf(by, roomId)
      return queue.run(nid, async () => {
        const room = await roomOf(by, roomId)
        await mustBeAbleToEnd(room, by.userId)
        const known = await sameUpgrade(room, version, creators)
        const upgrade = known ?? (await begin(by, room, version, creators))
        if (!known?.is_done) await proceed(upgrade)
        return upgrade.new_room_id
      })
    },
    async untilOpen(roomId) {
      // Who joins is not told why it could not be made.
      await opening.get(roomId)?.catch(() => undefined)
    },
    async runAll(isOver) {
      for (const row of await openUpgrades(db, UPGRADES_AT_ONCE)) {
        if (isOver()) return
        await queue
          .run(row.room_nid, () => resume(row))
          .catch((err: unknown) =>
            log.warn({ err, room: row.new_room_id }, 'a room upgrade was not completed; it will be tried again'),
          )
      }
    },
  }
}

function checkedCreators(named: readonly string[]): readonly string[] {
  const creators = [...new Set(named)]
  if (creators.length > MAX_ADDITIONAL_CREATORS) {
    throw new ProtocolError('M_INVALID_PARAM', `A room may have ${MAX_ADDITIONAL_CREATORS} additional creators.`)
  }
  if (creators.every((userId) => isUserId(userId))) return creators
  throw new ProtocolError('M_INVALID_PARAM', 'An entry of `additional_creators` is not a user id.')
}
