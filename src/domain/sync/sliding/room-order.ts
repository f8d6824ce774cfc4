import { standingOf } from '../answer.ts'
import { isInvitationShown } from '../invited-room.ts'
import { isNewer } from '../token.ts'
import type { UserRoom } from '../user-rooms.ts'
import type { SlidingLook } from './look.ts'
import type { LastOrders, OrderedRoom } from './ordered-room.ts'

/** The rooms of a user, those with the newest activity first. */
export interface RoomOrder {
  readonly rooms: readonly OrderedRoom[]
  readonly byNid: ReadonlyMap<number, OrderedRoom>
  /** Rooms that the user left, which no list shows: they come only if they are asked for. */
  readonly left: ReadonlyMap<number, OrderedRoom>
  readonly joined: ReadonlyMap<number, UserRoom>
  /** Rooms that the user left within the look. */
  readonly departed: readonly number[]
}

export async function roomOrderOf(look: SlidingLook): Promise<RoomOrder> {
  const { sources, own, by, now } = look
  const known = sources.userRooms.of(by.userNid)
  const rooms = known instanceof Promise ? await known : known
  const standing = standingOf(look, rooms)
  const { joined, departed } = standing instanceof Promise ? await standing : standing
  const reading = own.recency.know([...rooms.keys()])
  if (reading) await reading
  const byNid = new Map<number, OrderedRoom>()
  const others: OrderedRoom[] = []
  for (const [nid, membership] of rooms) {
    if (joined.has(nid)) {
      byNid.set(nid, { nid, isJoined: true, membership, recency: own.recency.of(nid), wasIn: true })
    } else if (!membership.forgotten && !isNewer(membership.changedAt, now.events)) {
      others.push({ nid, isJoined: false, membership, recency: membership.changedAt, wasIn: false })
    }
  }
  const left = new Map<number, OrderedRoom>()
  if (others.length > 0) await sortOut(look, others, byNid, left)
  return { rooms: inOrder(own.lastOrders, rooms, byNid), byNid, left, joined, departed }
}

/** Before `now`, a room may have had fewer events. It is where it will be a moment later. */
function inOrder(
  lastOrders: LastOrders,
  rooms: ReadonlyMap<number, UserRoom>,
  byNid: ReadonlyMap<number, OrderedRoom>,
): readonly OrderedRoom[] {
  const order: OrderedRoom[] = []
  const placed = new Set<number>()
  for (const nid of lastOrders.get(rooms) ?? []) {
    const room = byNid.get(nid)
    if (room === undefined) continue
    order.push(room)
    placed.add(nid)
  }
  for (const room of byNid.values()) if (!placed.has(room.nid)) order.push(room)
  order.sort((a, b) => b.recency - a.recency || b.nid - a.nid)
  const nids = order.map(({ nid }) => nid)
  lastOrders.set(rooms, nids)
  return order
}

/** Which rooms that the user is not in the lists show: invitations, knocks, and rooms that others took the user out of. */
async function sortOut(
  look: SlidingLook,
  others: readonly OrderedRoom[],
  shown: Map<number, OrderedRoom>,
  left: Map<number, OrderedRoom>,
): Promise<void> {
  const { sources, own, by, record } = look
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
    if (membership === 'knock') shown.set(room.nid, room)
    else if (membership === 'invite') {
      const sender = invitations.get(eventNid)?.sender
      if (sender === undefined || (await isInvitationShown(look, sender))) shown.set(room.nid, room)
    } else {
      const { wasIn = false, isKick = false, leftAt } = departures.get(eventNid) ?? {}
      // A client that shows the room learns that the user is out of it.
      if (isKick || record.rooms.has(room.nid)) shown.set(room.nid, { ...room, wasIn, leftAt })
      else if (wasIn) left.set(room.nid, { ...room, wasIn, leftAt })
    }
  }
}
