import { isRoomId } from '../../../core/ids.ts'
import { findRoomNids } from '../../../store/rooms/rooms.ts'
import { hasPartialState } from '../look.ts'
import { createFilterFacts, roomsThatPass } from './list-filters.ts'
import type { SlidingLook } from './look.ts'
import type { OrderedRoom } from './ordered-room.ts'
import type { RoomWish, SlidingList } from './request.ts'
import { bothRequired } from './required-state.ts'
import type { RoomOrder } from './room-order.ts'

/** A room that the request asks for. */
export interface WantedRoom {
  readonly room: OrderedRoom
  /** What all lists and subscriptions that name it ask for together. */
  readonly wish: RoomWish
  /** The keys of the lists whose range it is in. */
  readonly lists: readonly string[]
  readonly isSubscribed: boolean
}

export interface Windows {
  /** How many rooms pass the filters of each list. */
  readonly counts: ReadonlyMap<string, number>
  /** By number, in the order of the lists. */
  readonly rooms: ReadonlyMap<number, WantedRoom>
}

/** While the lists are gone through. */
interface Wanting extends WantedRoom {
  wish: RoomWish
  readonly lists: string[]
  isSubscribed: boolean
}

/** The rooms in the ranges of the lists, and those that are asked for by id. */
export async function windowsOf(look: SlidingLook, order: RoomOrder): Promise<Windows> {
  const counts = new Map<string, number>()
  const rooms = new Map<number, Wanting>()
  const join = createJoining()
  const facts = createFilterFacts(look, order.joined)
  const want = (room: OrderedRoom, wish: RoomWish, list?: string): void => {
    const had = rooms.get(room.nid)
    const wanted = had ?? { room, wish, lists: [], isSubscribed: false }
    if (had) wanted.wish = join(had.wish, wish)
    else rooms.set(room.nid, wanted)
    if (list === undefined) wanted.isSubscribed = true
    else wanted.lists.push(list)
  }
  for (const [key, list] of look.sliding.lists) {
    const choosing = roomsThatPass(look, order, list.filters, facts)
    const passing = choosing instanceof Promise ? await choosing : choosing
    const needsAll = list.required.parts.some(({ needsAllMembers }) => needsAllMembers)
    const whole = needsAll ? passing.filter((room) => !lacksMembers(look, room)) : passing
    counts.set(key, whole.length)
    for (const room of inRanges(whole, list)) want(room, list, key)
  }
  const subscribing = look.sliding.subscriptions.size === 0 ? [] : await subscriptions(look)
  for (const [nid, wish] of subscribing) {
    const room = order.find(nid)
    const needsAll = wish.required.parts.some(({ needsAllMembers }) => needsAllMembers)
    if (room && !(needsAll && lacksMembers(look, room))) want(room, wish)
  }
  return { counts, rooms }
}

/** A room whose members are still to come is of no use to a client that wants all of them. */
const lacksMembers = (look: SlidingLook, { nid, isJoined }: OrderedRoom): boolean =>
  isJoined && hasPartialState(look, nid)

function inRanges(rooms: readonly OrderedRoom[], { ranges }: SlidingList): readonly OrderedRoom[] {
  if (ranges === undefined) return rooms
  return ranges.flatMap(([first, last]) => rooms.slice(first, last + 1))
}

/** Most rooms share their wishes, so each pair of wishes is joined once. */
function createJoining(): (one: RoomWish, other: RoomWish) => RoomWish {
  const joined = new Map<RoomWish, Map<RoomWish, RoomWish>>()
  return (one, other) => {
    const known = joined.get(one)?.get(other)
    if (known) return known
    const timelineLimit = Math.max(one.timelineLimit, other.timelineLimit)
    const both = { timelineLimit, required: bothRequired(one.required, other.required) }
    joined.set(one, (joined.get(one) ?? new Map()).set(other, both))
    return both
  }
}

async function subscriptions({ sliding, sources }: SlidingLook): Promise<[nid: number, wish: RoomWish][]> {
  const ids = [...sliding.subscriptions.keys()].filter(isRoomId)
  if (ids.length === 0) return []
  const rows = await findRoomNids(sources.db, ids)
  return rows.map(({ room_nid, room_id }) => [room_nid, sliding.subscriptions.get(room_id)!])
}
