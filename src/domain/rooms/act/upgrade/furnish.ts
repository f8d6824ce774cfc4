import type { Logger } from 'pino'
import { ProtocolError } from '../../../../core/errors.ts'
import { altAliasesOf, canonicalAliasOf, creatorsOf } from '../../../../core/event/content.ts'
import type { RoomId } from '../../../../core/ids.ts'
import type { RoomVersion } from '../../../../core/room-version.ts'
import type { Database } from '../../../../store/db/db.ts'
import { getAliasesOfRoom, redirectAliases } from '../../../../store/rooms/aliases.ts'
import { isPublished, publishRoom, unpublishRoom } from '../../../../store/rooms/published-rooms.ts'
import type { UpgradeRow } from '../../../../store/rooms/room-upgrades.ts'
import { getMembers } from '../../../../store/rooms/rooms.ts'
import type { Clock } from '../../../clock.ts'
import { COPIED_EVENTS_PER_COMMIT } from '../../../limits/room-upgrades.ts'
import type { RoomAppservices } from '../../room/appservices-of-room.ts'
import type { Room } from '../../room/room.ts'
import type { Appender } from '../../write/append.ts'
import type { Draft } from '../../write/draft.ts'
import { powerLevels } from '../create-presets.ts'
import { childNids, copiedLevels, copiedState, type Replaced, repeated } from './replacement.ts'
import type { Upgrader } from './tombstone.ts'

export interface FurnisherParts {
  readonly db: Database
  readonly clock: Clock
  readonly appender: Appender
  readonly appservices: Pick<RoomAppservices, 'aliasesChanged'>
  readonly log: Logger
}

/** A new room, which has a creator and nothing else, and the room that it replaces. */
export interface Furnishing {
  readonly design: Pick<UpgradeRow, 'new_room_id' | 'new_room_nid' | 'room_nid' | 'creation'>
  readonly by: Upgrader
  readonly to: RoomVersion
  readonly replaced: Replaced
}

/**
 * Copies bans, children, names and state into a new room, or what is missing of them. Nobody can join before that is done: join rules come
 * late. Power levels come last, because they may take the upgrader's power to copy.
 */
export function createFurnisher({ db, appender, appservices, clock, log }: FurnisherParts) {
  /** Appends what a room has not yet. What its rules refuse is left out. Gives how many were refused. */
  async function appendMissing(roomId: RoomId, drafts: readonly Draft[]): Promise<number> {
    const isMissing = (room: Room, { type, stateKey }: Draft) =>
      room.stateNid(room.pending.state, type, stateKey ?? '') === 0
    try {
      await appender.append(roomId, (room) => drafts.filter((draft) => isMissing(room, draft)))
      return 0
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status >= 500) throw error
      if (drafts.length === 1) {
        log.info({ room: roomId, type: drafts[0]!.type, reason: error.message }, 'an event was not copied')
        return 1
      }
    }
    let refused = 0
    for (const draft of drafts) refused += await appendMissing(roomId, [draft])
    return refused
  }

  async function copyInParts(
    roomId: RoomId,
    { room }: Replaced,
    nids: readonly number[],
    by: Upgrader,
    spared: readonly string[],
  ) {
    for (let at = 0; at < nids.length; at += COPIED_EVENTS_PER_COMMIT) {
      const some = await room.events(nids.slice(at, at + COPIED_EVENTS_PER_COMMIT))
      const drafts = repeated(some.values(), by).filter(({ stateKey = '' }) => !spared.includes(stateKey))
      if (drafts.length > 0) await appendMissing(roomId, drafts)
    }
  }

  async function moveNames(from: number, to: number): Promise<void> {
    await db.tx(async (tx) => {
      await redirectAliases(tx, from, to)
      if (!(await isPublished(tx, from))) return
      await unpublishRoom(tx, from)
      await publishRoom(tx, to, clock.now())
    })
    for (const nid of [from, to]) appservices.aliasesChanged(nid)
  }

  /** The canonical alias of the old room, as far as its aliases lead to the new one now. */
  async function canonicalAlias({ room, state }: Replaced, newRoomNid: number, by: Upgrader): Promise<Draft[]> {
    const event = await room.stateEvent('m.room.canonical_alias', '', state)
    const moved = new Set((await getAliasesOfRoom(db, newRoomNid)).map(({ alias }) => alias))
    const alias = canonicalAliasOf(event)
    const others = altAliasesOf(event).filter((other) => moved.has(other))
    const isNamed = alias !== undefined && moved.has(alias)
    if (!isNamed && others.length === 0) return []
    const content = { ...(isNamed && { alias }), ...(others.length > 0 && { alt_aliases: others }) }
    return [{ type: 'm.room.canonical_alias', stateKey: '', content, ...by }]
  }

  return async ({ design, by, to, replaced }: Furnishing): Promise<void> => {
    const { new_room_id: roomId, new_room_nid: nid, room_nid: oldNid } = design
    const creators = creatorsOf(to, { sender: by.sender, content: design.creation })
    const bans = (await getMembers(db, oldNid, ['ban'])).map(({ event_nid }) => event_nid)
    await copyInParts(roomId, replaced, bans, by, creators)
    await copyInParts(roomId, replaced, childNids(replaced), by, [])
    await moveNames(oldNid, nid)
    const levels = await copiedLevels(replaced, by, { to, creators })
    const state = [...(await copiedState(replaced, by, to)), ...(await canonicalAlias(replaced, nid, by))]
    const refused = await appendMissing(roomId, [...state, levels])
    if (refused > 0) await appendMissing(roomId, [{ ...levels, content: powerLevels(to, by.sender, []) }])
  }
}
