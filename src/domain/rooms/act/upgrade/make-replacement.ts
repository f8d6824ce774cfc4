import { ProtocolError } from '../../../../core/errors.ts'
import { createContentOf } from '../../../../core/event/content.ts'
import type { EventId, ServerName, UserId } from '../../../../core/ids.ts'
import { isObject, type JsonObject } from '../../../../core/json.ts'
import { type RoomVersion, roomVersion } from '../../../../core/room-version.ts'
import type { SigningKey } from '../../../../core/signing/key.ts'
import { endUpgrade, noteClosing, type UpgradeRow, upgradesOfRoom } from '../../../../store/rooms/room-upgrades.ts'
import type { Requester } from '../../../accounts/requester.ts'
import type { Random } from '../../../clock.ts'
import { MAX_CREATION_BYTES } from '../../../limits/room-upgrades.ts'
import type { Users } from '../../../users.ts'
import type { EventCache } from '../../room/event-cache.ts'
import { stateAt } from '../../room/past-state.ts'
import type { RoomRegistry } from '../../room/registry.ts'
import { emptyRoom, type Room } from '../../room/room.ts'
import type { RoomEvent } from '../../room/room-event.ts'
import { roomIdFor } from '../create.ts'
import type { PublicProfile } from '../profile-events.ts'
import { createFurnisher, type FurnisherParts } from './furnish.ts'
import type { Replaced } from './replacement.ts'
import type { Successions } from './successions.ts'
import type { Upgrader } from './tombstone.ts'

/** A room that is to replace another. */
export type Design = Omit<UpgradeRow, 'closing_nid' | 'is_done'>

export interface ReplacementParts extends FurnisherParts {
  readonly serverName: ServerName
  readonly signingKey: SigningKey
  readonly random: Random
  readonly users: Users
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly successions: Pick<Successions, 'carryAll'>
  profileOf(userId: UserId): Promise<PublicProfile>
}

/** Makes the rooms that replace others. */
export interface ReplacementMaker {
  /** What the new room will be, its id included. Nothing is written. @throws ProtocolError `M_TOO_LARGE` */
  design(
    by: Requester,
    room: Room,
    version: RoomVersion,
    creators: readonly string[],
    given: { readonly nid: number; readonly ts: number },
  ): Promise<Design>
  /**
   * Makes the new room once the old one has its tombstone, or what is missing of it. Nobody can join it before it has its bans: the join
   * rules come last.
   */
  make(design: Design & Upgrader): Promise<void>
}

/** An event id of the greatest length that ours have. */
const SOME_EVENT_ID = `$${'x'.repeat(254)}` as EventId

export function createReplacementMaker(parts: ReplacementParts): ReplacementMaker {
  const { db, registry, appender, events } = parts
  const furnish = createFurnisher(parts)

  async function createIn(design: Design & Upgrader, version: RoomVersion, tombstone: RoomEvent): Promise<void> {
    const { new_room_nid: nid, new_room_id: id, sender, senderNid, user_id: userId } = design
    const content = withPredecessor(version, design.creation, tombstone.id)
    const create = { type: 'm.room.create', stateKey: '', content, sender, senderNid, ts: design.created_ts }
    const profile = await parts.profileOf(userId)
    const member = { membership: 'join', ...profile }
    const drafts = [create, { type: 'm.room.member', stateKey: userId, content: member, sender, senderNid }]
    const made = await appender.appendTo(emptyRoom({ nid, id, version, events }), drafts)
    if (made === 'moved' && !(await registry.get(id))) {
      throw new ProtocolError('M_UNKNOWN', 'The room could not be made just now. Send the request again.', {
        status: 503,
      })
    }
  }

  async function replacedBy(room: Room, tombstone: RoomEvent): Promise<Replaced> {
    const rows = await upgradesOfRoom(db, room.nid)
    const closings = new Set(rows.flatMap(({ closing_nid }) => closing_nid ?? []))
    return { room, state: await stateAt(db, room, tombstone.pointBefore), closings }
  }

  /** Remembers the power levels that came with the tombstone: a later upgrade copies those before them. */
  async function rememberClosing(room: Room, tombstone: RoomEvent, newRoomNid: number): Promise<void> {
    const levels = await room.stateEvent('m.room.power_levels', '')
    if (!levels || levels.pos !== tombstone.pos + 1 || levels.senderNid !== tombstone.senderNid) return
    await db.tx((tx) => noteClosing(tx, newRoomNid, levels.nid))
  }

  return {
    async design(by, room, version, creators, { nid, ts }) {
      const before = await room.stateEvent('m.room.create', '')
      const { type, federates } = createContentOf(before)
      const creation: JsonObject = {
        ...(type === undefined ? {} : { type }),
        ...(federates ? {} : { 'm.federate': false }),
        room_version: version.id,
        ...(version.createNamesCreator && { creator: by.userId }),
        ...(creators.length > 0 && { additional_creators: [...creators] }),
        predecessor: { room_id: room.id },
      }
      const content = withPredecessor(version, creation, SOME_EVENT_ID)
      if (Buffer.byteLength(JSON.stringify(content)) > MAX_CREATION_BYTES) {
        throw new ProtocolError('M_TOO_LARGE', 'The create event of the new room would be too large.')
      }
      const create = { type: 'm.room.create', stateKey: '', content, sender: by.userId, senderNid: by.userNid, ts }
      const newRoomId = roomIdFor(parts, version, create)
      return {
        new_room_nid: nid,
        new_room_id: newRoomId,
        room_nid: room.nid,
        room_version: version.id,
        user_id: by.userId,
        creation,
        created_ts: ts,
      }
    },

    async make(design) {
      const version = roomVersion(design.room_version)
      if (!version) throw new Error(`room version ${design.room_version} is not known any more`)
      const by = { sender: design.sender, senderNid: design.senderNid }
      const old = await registry.getByNid(design.room_nid)
      const tombstone = await old.stateEvent('m.room.tombstone', '')
      if (!tombstone) throw new Error(`room ${old.id} has lost its tombstone`)
      await rememberClosing(old, tombstone, design.new_room_nid)
      if (!(await registry.get(design.new_room_id))) await createIn(design, version, tombstone)
      const made = await registry.getByNid(design.new_room_nid)
      const isFurnished = made.stateNid(made.committed.state, 'm.room.power_levels', '') !== 0
      if (!isFurnished) await furnish({ design, by, to: version, replaced: await replacedBy(old, tombstone) })
      await parts.successions.carryAll([...old.localMembers.values()], old.id, design.new_room_id)
      await db.tx((tx) => endUpgrade(tx, design.new_room_nid))
    },
  }
}

/** The content of the create event. A room whose id is the hash of this event is made before the tombstone, so it cannot name that. */
function withPredecessor(version: RoomVersion, creation: JsonObject, eventId: EventId): JsonObject {
  if (version.roomIdIsCreateHash || !isObject(creation.predecessor)) return creation
  return { ...creation, predecessor: { ...creation.predecessor, event_id: eventId } }
}
