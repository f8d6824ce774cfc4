import { displayNameOf, membershipOf } from '../../../core/event/content.ts'
import type { Pdu } from '../../../core/event/format.ts'
import { type EventId, isUserId, type RoomId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import { createKeyedQueue } from '../../../core/keyed-queue.ts'
import { clampToSafe } from '../../../core/large-integers.ts'
import type { RoomVersion } from '../../../core/room-version.ts'
import type { Database } from '../../../store/db/db.ts'
import { getStrippedState, putStrippedState } from '../../../store/events/stripped-state.ts'
import { nextRoomNid } from '../../../store/rooms/rooms.ts'
import type { UserRooms } from '../../sync/user-rooms.ts'
import type { Users } from '../../users.ts'
import type { EventCache } from '../room/event-cache.ts'
import { authIdsOf } from '../room/event-references.ts'
import type { RoomRegistry } from '../room/registry.ts'
import { emptyRoom, type Room } from '../room/room.ts'
import { copyOf, outlierRow, RoomEvent } from '../room/room-event.ts'
import type { Persister } from '../write/persister.ts'
import { NO_GRAPH } from '../write/unit.ts'

/** A membership of a user of ours in a room that this server is not in: an invitation, a knock, or the end of either. */
export interface RemoteMembershipEvent {
  readonly version: RoomVersion
  readonly roomId: RoomId
  readonly eventId: EventId
  readonly pdu: Pdu
  readonly json: string
  /** The stripped state of the room. */
  readonly state: readonly JsonObject[]
  /** The invitation or knock that this event ends. If another has replaced it meanwhile, that one stands. */
  readonly ends?: RoomEvent
}

/**
 * Memberships of our users in rooms that this server is not in. Their events are stored apart, because the state around them is not known.
 */
export interface RemoteMembers {
  /** Stores a membership and wakes the user. Does nothing when the event is known, or this server is in the room by now. */
  record(event: RemoteMembershipEvent): Promise<void>
  /** Servers through which the room of an invitation or a knock may be reached: those that its stripped state names. */
  waysOf(event: RoomEvent): Promise<ServerName[]>
  /** The user's invitation or knock for such a room; undefined when there is none. */
  pendingOf(userNid: number, roomId: RoomId): Promise<{ readonly room: Room; readonly event: RoomEvent } | undefined>
  /** Whether an event cites a membership that is not the user's newest: it ends an older one. */
  isOutdated(pdu: Pdu, pending: RoomEvent): Promise<boolean>
}

const MAX_ATTEMPTS = 8

export function createRemoteMembers(parts: {
  readonly db: Database
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly users: Users
  readonly userRooms: UserRooms
  readonly persister: Persister
}): RemoteMembers {
  const { db, registry, events, users, userRooms, persister } = parts
  /** A membership is visible before the next one is written. */
  const roomQueue = createKeyedQueue<string>()

  async function roomOf({ roomId, version }: RemoteMembershipEvent): Promise<Room> {
    return (await registry.get(roomId)) ?? emptyRoom({ nid: await nextRoomNid(db), id: roomId, version, events })
  }

  async function write(room: Room, { eventId, pdu, json, ends }: RemoteMembershipEvent): Promise<boolean> {
    const userId = pdu.state_key as UserId
    const nids = await users.intern([userId, pdu.sender])
    const userNid = nids.get(userId)!
    const known = (await userRooms.of(userNid)).get(room.nid)
    if (ends !== undefined && known?.eventNid !== ends.nid) return true
    if (!room.alive) return false
    const before = known?.membership
    const nid = persister.takeNid()
    const origin_server_ts = clampToSafe(pdu.origin_server_ts)
    const event = new RoomEvent(
      outlierRow({
        ...{ event_nid: nid, room_nid: room.nid, sender_nid: nids.get(pdu.sender)!, event_id: copyOf(eventId), json },
        ...{ type: pdu.type, origin_server_ts, key_id: null, standing: 'outlier', reason: null, auth_nids: null },
      }),
      pdu,
    )
    const member = {
      ...{ userNid, userId, isLocal: true, displayName: displayNameOf(event), before, after: membershipOf(event) },
      ...{ eventNid: nid, changedAt: nid },
    }
    const head = room.pending
    const unit = {
      ...NO_GRAPH,
      ...{ changes: [], unread: [], redactions: [], txn: undefined, keys: [], room, events: [event] },
      ...{ before: head, after: { ...head, version: head.version + 1 }, members: [member] },
    }
    room.enqueued(unit)
    room.outliersTaken++
    return (await persister.enqueue(unit)).kind === 'committed'
  }

  async function record(wanted: RemoteMembershipEvent): Promise<void> {
    await db.tx((tx) => putStrippedState(tx, copyOf(wanted.eventId), wanted.state))
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const room = await roomOf(wanted)
      if (room.localMembers.size > 0 || (await events.getById(copyOf(wanted.eventId)))) return
      if (await write(room, wanted)) return
    }
    throw new Error(`${wanted.roomId} is too busy`)
  }

  return {
    record: (wanted) => roomQueue.run(`${wanted.roomId} ${wanted.pdu.state_key}`, () => record(wanted)),

    async isOutdated(pdu, pending) {
      const cited = await events.loadByIds(authIdsOf(pdu).map(copyOf))
      const ofTarget = [...cited.values()].filter(
        ({ type, pdu: { state_key } }) => type === pdu.type && state_key === pdu.state_key,
      )
      return ofTarget.some(({ nid }) => nid !== pending.nid)
    },

    async waysOf({ id, sender }) {
      const shown = await getStrippedState(db, id)
      const senders = shown.flatMap((event) => (isUserId(event.sender) ? [event.sender] : []))
      return [...new Set([sender, ...senders].map((userId) => serverOf(userId)))]
    },

    async pendingOf(userNid, roomId) {
      const room = await registry.get(roomId)
      const known = room && (await userRooms.of(userNid)).get(room.nid)
      if (!known || (known.membership !== 'invite' && known.membership !== 'knock')) return undefined
      const event = (await events.load([known.eventNid])).get(known.eventNid)
      return event?.standing === 'outlier' ? { room, event } : undefined
    },
  }
}
