import type { ByteBudget } from '../../../core/byte-budget.ts'
import { MIN_ROOMS_OF_KEPT_ORDER } from '../../limits/sliding-sync.ts'
import type { JournaledChanges } from '../recent-changes.ts'
import { type EventPosition, isNewer, writerOf } from '../token.ts'
import type { RoomsOfUser, UserRoom } from '../user-rooms.ts'
import { byRecency, type OrderedRoom, placeIn } from './ordered-room.ts'
import type { Recency } from './recency.ts'

/** The rooms of a user as they are now, whatever position a look has. */
export interface KnownRooms {
  readonly joined: ReadonlyMap<number, UserRoom>
  /** The rooms that the user is not in. */
  readonly others: ReadonlyMap<number, UserRoom>
  /** The joined rooms, those with the newest activity first. */
  readonly order: readonly OrderedRoom[]
  /** Of joined rooms, by number. */
  readonly byNid: ReadonlyMap<number, OrderedRoom>
  /** Whether a membership changed after a position. */
  hasChangedAfter(position: EventPosition): boolean
}

/**
 * Sorts a user's rooms. For users in many rooms it keeps the order, and puts only rooms with news in another place. An order that was given
 * out does not change.
 */
export type KnownRoomsOf = (userNid: number, rooms: RoomsOfUser) => KnownRooms | Promise<KnownRooms>

interface Kept extends KnownRooms {
  readonly of: RoomsOfUser
  readonly revision: number
  readonly generation: number
  readonly byNid: Map<number, OrderedRoom>
  order: readonly OrderedRoom[]
  /** How many changes of rooms are in the order. */
  upTo: number
}

const ORDER_BYTES = 500
const ROOM_BYTES = 260
/** If more rooms have news, all are sorted. */
const MANY = 64

export function createKnownRooms(parts: {
  readonly budget: ByteBudget
  readonly recency: Recency
  readonly roomEvents: JournaledChanges
}): KnownRoomsOf {
  const { recency, roomEvents } = parts
  const kept = parts.budget.part<number, Kept>({
    bytesOf: ({ joined, others }) => ORDER_BYTES + (joined.size + others.size) * ROOM_BYTES,
  })

  function make(rooms: RoomsOfUser): Kept {
    const others = new Map<number, UserRoom>()
    const byNid = new Map<number, OrderedRoom>()
    /** For each writer. */
    const newest: number[] = []
    for (const [nid, membership] of rooms) {
      const { changedAt } = membership
      const writer = writerOf(changedAt)
      newest[writer] = Math.max(newest[writer] ?? 0, changedAt)
      if (membership.membership !== 'join') others.set(nid, membership)
      else byNid.set(nid, { nid, isJoined: true, membership, recency: recency.of(nid), wasIn: true })
    }
    const order = [...byNid.values()].sort(byRecency)
    const hasChangedAfter = (position: EventPosition) =>
      newest.some((changedAt) => changedAt !== undefined && isNewer(changedAt, position))
    return {
      joined: rooms.joined,
      others,
      byNid,
      order,
      hasChangedAfter,
      of: rooms,
      revision: rooms.revision,
      generation: recency.generation,
      upTo: roomEvents.count,
    }
  }

  /** Brings an order up to date. @returns whether that was possible */
  function mend(known: Kept): boolean {
    if (known.upTo === roomEvents.count) return true
    const changed = roomEvents.changedSince(known.upTo)
    if (changed === undefined) return false
    const moved: OrderedRoom[] = []
    for (const nid of changed) {
      const room = known.byNid.get(nid)
      if (room && room.recency < recency.of(nid)) moved.push(room)
    }
    if (moved.length > MANY) return false
    known.upTo = roomEvents.count
    if (moved.length === 0) return true
    const order = [...known.order]
    for (const room of moved) {
      order.splice(placeIn(order, room), 1)
      const now = { ...room, recency: recency.of(room.nid) }
      order.splice(placeIn(order, now), 0, now)
      known.byNid.set(room.nid, now)
    }
    known.order = order
    return true
  }

  function makeAndKeep(userNid: number, rooms: RoomsOfUser): KnownRooms {
    const made = make(rooms)
    if (rooms.size < MIN_ROOMS_OF_KEPT_ORDER) return made
    kept.set(userNid, made)
    return { ...made }
  }

  async function knowAndMake(userNid: number, rooms: RoomsOfUser, reading: Promise<void>): Promise<KnownRooms> {
    const { revision } = rooms
    await reading
    // The user may have entered a room meanwhile.
    if (rooms.revision !== revision) await recency.know(userNid, rooms.keys())
    return makeAndKeep(userNid, rooms)
  }

  return (userNid, rooms) => {
    const had = kept.get(userNid)
    const isSame = had?.of === rooms && had.revision === rooms.revision && had.generation === recency.generation
    // A look that waits for something later keeps the order that it was given.
    if (isSame && mend(had)) return { ...had }
    const reading = recency.know(userNid, rooms.keys())
    return reading ? knowAndMake(userNid, rooms, reading) : makeAndKeep(userNid, rooms)
  }
}
