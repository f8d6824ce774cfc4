import { changedWithin } from '../device-changes.ts'
import { isInvitationShown } from '../invited-room.ts'
import { standingOf } from '../standing.ts'
import { isNewer } from '../token.ts'
import type { RoomsOfUser, UserRoom } from '../user-rooms.ts'
import type { KnownRooms } from './known-rooms.ts'
import type { SlidingLook } from './look.ts'
import { byRecency, type OrderedRoom, withRooms } from './ordered-room.ts'

/** The rooms of a user at the end of a look. */
export interface RoomStanding {
  readonly joined: ReadonlyMap<number, UserRoom>
  /** Rooms that the user left within the look. */
  readonly departed: readonly number[]
}

/** The rooms of a user that lists show, those with the newest activity first. */
export interface RoomOrder extends RoomStanding {
  readonly rooms: readonly OrderedRoom[]
  /** A room that is in the order; or one that the user left, which no list shows: it comes only if it is asked for. */
  find(nid: number): OrderedRoom | undefined
  /** Whether the user never had to do with a room, or the room was removed from this server. */
  isUnknown(nid: number): boolean
}

/** Before `now`, a room may have had fewer events. It is where it will be a moment later. */
export function roomOrderOf(look: SlidingLook): RoomOrder | Promise<RoomOrder> {
  const finding = roomsOf(look)
  return finding instanceof Promise ? finding.then((found) => orderOf(look, found)) : orderOf(look, finding)
}

function orderOf(look: SlidingLook, { rooms, known }: FoundRooms): RoomOrder | Promise<RoomOrder> {
  // A change that is written but not yet published belongs to the next answer.
  if (known.hasChangedAfter(look.now.events)) return orderBefore(look, rooms)
  if (known.others.size > 0) return sortOut(look, known.others).then((sorted) => orderWith(look, rooms, known, sorted))
  return orderWith(look, rooms, known, NO_OTHERS)
}

function orderWith(look: SlidingLook, rooms: RoomsOfUser, known: KnownRooms, { shown, left }: SortedOut): RoomOrder {
  const { joined, byNid, order } = known
  const isUnknown = (nid: number): boolean => !rooms.has(nid)
  if (known.others.size === 0) return { joined, departed: [], rooms: order, find: (nid) => byNid.get(nid), isUnknown }
  const own = new Map(shown.map((room) => [room.nid, room]))
  return {
    joined,
    departed: departedIn(look, known.others),
    rooms: withRooms(order, shown),
    find: (nid) => byNid.get(nid) ?? own.get(nid) ?? left.get(nid),
    isUnknown,
  }
}

/** The same without an order, for clients that ask for no rooms. */
export async function roomStandingOf(look: SlidingLook): Promise<RoomStanding> {
  const { rooms, known } = await roomsOf(look)
  if (known.hasChangedAfter(look.now.events)) return standingOf(look, rooms)
  return { joined: known.joined, departed: departedIn(look, known.others) }
}

interface FoundRooms {
  readonly rooms: RoomsOfUser
  readonly known: KnownRooms
}

function roomsOf({ sources, own, by }: SlidingLook): FoundRooms | Promise<FoundRooms> {
  const sort = (rooms: RoomsOfUser): FoundRooms | Promise<FoundRooms> => {
    const sorting = own.knownRooms(by.userNid, rooms)
    return sorting instanceof Promise ? sorting.then((known) => ({ rooms, known })) : { rooms, known: sorting }
  }
  const reading = sources.userRooms.of(by.userNid)
  return reading instanceof Promise ? reading.then(sort) : sort(reading)
}

function departedIn({ since, now }: SlidingLook, others: ReadonlyMap<number, UserRoom>): readonly number[] {
  const departed: number[] = []
  if (since === undefined) return departed
  for (const [nid, membership] of others) if (changedWithin(membership, since, now)) departed.push(nid)
  return departed
}

/** The order at a position after which memberships changed. */
async function orderBefore(look: SlidingLook, rooms: RoomsOfUser): Promise<RoomOrder> {
  const standing = standingOf(look, rooms)
  const { joined, departed } = standing instanceof Promise ? await standing : standing
  const byNid = new Map<number, OrderedRoom>()
  const others = new Map<number, UserRoom>()
  for (const [nid, membership] of rooms) {
    if (!joined.has(nid)) others.set(nid, membership)
    else byNid.set(nid, { nid, isJoined: true, membership, recency: look.own.recency.of(nid), wasIn: true })
  }
  const { shown, left } = await sortOut(look, others)
  for (const room of shown) byNid.set(room.nid, room)
  return {
    joined,
    departed,
    rooms: [...byNid.values()].sort(byRecency),
    find: (nid) => byNid.get(nid) ?? left.get(nid),
    isUnknown: (nid) => !rooms.has(nid),
  }
}

interface SortedOut {
  readonly shown: readonly OrderedRoom[]
  readonly left: ReadonlyMap<number, OrderedRoom>
}

const NO_OTHERS: SortedOut = { shown: [], left: new Map() }

/** Which rooms that the user is not in the lists show: invitations, knocks, and rooms that others took the user out of. */
async function sortOut(look: SlidingLook, memberships: ReadonlyMap<number, UserRoom>): Promise<SortedOut> {
  const { sources, own, by, record, now } = look
  const others: OrderedRoom[] = []
  for (const [nid, membership] of memberships) {
    if (membership.forgotten || isNewer(membership.changedAt, now.events)) continue
    others.push({ nid, isJoined: false, membership, recency: membership.changedAt, wasIn: false })
  }
  if (others.length === 0) return NO_OTHERS
  const shown: OrderedRoom[] = []
  const left = new Map<number, OrderedRoom>()
  const invited = others.filter(({ membership }) => membership.membership === 'invite')
  const invitations = await sources.events.load(invited.map(({ membership }) => membership.eventNid))
  const gone = others.filter(({ membership: { membership } }) => membership === 'leave' || membership === 'ban')
  const finding = own.departures(
    by.userId,
    gone.map(({ membership }) => membership),
  )
  const departures = finding instanceof Promise ? await finding : finding
  for (const room of others) {
    const { membership, eventNid } = room.membership
    if (membership === 'knock') shown.push(room)
    else if (membership === 'invite') {
      const sender = invitations.get(eventNid)?.sender
      if (sender === undefined || (await isInvitationShown(look, sender))) shown.push(room)
    } else {
      const { wasIn = false, isKick = false, leftAt } = departures.get(eventNid) ?? {}
      // A client that shows the room learns that the user is out of it.
      if (isKick || record.rooms.has(room.nid)) shown.push({ ...room, wasIn, leftAt })
      else if (wasIn) left.set(room.nid, { ...room, wasIn, leftAt })
    }
  }
  return { shown, left }
}
