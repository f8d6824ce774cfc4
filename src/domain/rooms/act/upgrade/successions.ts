import type { Logger } from 'pino'
import { createContentOf, replacementRoomOf } from '../../../../core/event/content.ts'
import type { RoomId, UserId } from '../../../../core/ids.ts'
import { createKeyedQueue } from '../../../../core/keyed-queue.ts'
import { SETTINGS_COPIED_AT_ONCE, SETTINGS_LOOKED_FOR_AT_ONCE } from '../../../limits/room-upgrades.ts'
import type { RoomRegistry } from '../../room/registry.ts'
import type { Room } from '../../room/room.ts'
import { streamed, type Unit } from '../../write/unit.ts'

/** A local user. */
interface Owner {
  readonly userNid: number
  readonly userId: UserId
}

/** Copies what users set for a room (tags, push rules, direct chats) to the room that replaces it. */
export interface SettingsCarrier {
  /** Those of some users who may have set anything for a room. */
  among(users: readonly Owner[], roomId: RoomId): Promise<readonly Owner[]>
  /** What the user has already set for the new room stays. */
  carry(user: Owner, from: RoomId, to: RoomId): Promise<void>
}

/**
 * Rooms that replace others, for their local members: a user who joins such a room gets the settings of the room before it. A room only
 * says itself what it replaces, so the old room's tombstone has to name it too.
 */
export interface Successions {
  /** Called for each commit. */
  committed(unit: Unit): void
  /** Resolves once the settings of a user who has just joined a room are copied. */
  settled(userNid: number, roomId: RoomId): Promise<void>
  /** Copies the settings of users from a room to one that is known to replace it. */
  carryAll(users: readonly Owner[], from: RoomId, to: RoomId): Promise<void>
}

export function createSuccessions({
  registry,
  settings,
  log,
}: {
  readonly registry: Pick<RoomRegistry, 'get' | 'getByNid'>
  readonly settings: SettingsCarrier
  readonly log: Pick<Logger, 'warn'>
}): Successions {
  // A few users at a time: a whole server may move at once.
  const turns = createKeyedQueue<number>()
  const underWay = new Map<string, Promise<void>>()

  function carry(user: Owner, from: RoomId, to: RoomId): Promise<void> {
    return turns
      .run(user.userNid % SETTINGS_COPIED_AT_ONCE, () => settings.carry(user, from, to))
      .catch((err: unknown) => log.warn({ err, room: to }, 'the settings of a user were not copied to a new room'))
  }

  async function carryAll(users: readonly Owner[], from: RoomId, to: RoomId): Promise<void> {
    for (let at = 0; at < users.length; at += SETTINGS_LOOKED_FOR_AT_ONCE) {
      const owners = await settings.among(users.slice(at, at + SETTINGS_LOOKED_FOR_AT_ONCE), from)
      await Promise.all(owners.map((user) => carry(user, from, to)))
    }
  }

  /** The room that this one replaces, if both say so. */
  async function predecessorOf(room: Room): Promise<Room | undefined> {
    const { predecessor } = createContentOf(await room.stateEvent('m.room.create', ''))
    const before = predecessor && (await registry.get(predecessor.roomId))
    const tombstone = await before?.stateEvent('m.room.tombstone', '')
    return replacementRoomOf(tombstone) === room.id ? before : undefined
  }

  async function entered(user: Owner, room: Room): Promise<void> {
    const before = await predecessorOf(room)
    if (before) await carry(user, before.id, room.id)
  }

  /** A room was replaced: users may have joined the new one before. */
  async function replaced(room: Room): Promise<void> {
    const replacement = replacementRoomOf(await room.stateEvent('m.room.tombstone', ''))
    const next = replacement && (await registry.get(replacement))
    if (!next || (await predecessorOf(next))?.nid !== room.nid) return
    await carryAll([...next.localMembers.values()], room.id, next.id)
  }

  function begin(key: string, work: () => Promise<void>): void {
    const done = work()
      .catch((err: unknown) => log.warn({ err }, 'the settings of users were not copied to a new room'))
      .finally(() => {
        if (underWay.get(key) === done) underWay.delete(key)
      })
    underWay.set(key, done)
  }

  return {
    carryAll,
    committed(unit) {
      const { room, members } = unit
      for (const { userNid, userId, isLocal, before, after } of members) {
        if (!isLocal || after !== 'join' || before === 'join') continue
        begin(`${userNid} ${room.id}`, () => entered({ userNid, userId }, room))
      }
      if (unit.changes.length === 0) return
      if (streamed(unit).some(({ type, standing }) => type === 'm.room.tombstone' && standing === undefined)) {
        begin(room.id, () => replaced(room))
      }
    },
    async settled(userNid, roomId) {
      await underWay.get(`${userNid} ${roomId}`)
    },
  }
}
