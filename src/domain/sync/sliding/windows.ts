import { isRoomId } from '../../../core/ids.ts'
import { findRoomNids } from '../../../store/rooms/rooms.ts'
import { hasPartialState } from '../look.ts'
import { createFilterFacts, type FilterFacts, roomsThatPass } from './list-filters.ts'
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
export function windowsOf(look: SlidingLook, order: RoomOrder): Windows | Promise<Windows> {
  const { lists, subscriptions } = look.sliding
  const gathering = new Gathering(look, order)
  const left = [...lists]
  // One after another: what is read for one list is there for the next.
  for (const [place, [key, list]] of left.entries()) {
    const choosing = gathering.choose(list)
    if (choosing instanceof Promise) return rest(gathering, left.slice(place), choosing)
    gathering.take(key, list, choosing)
  }
  return subscriptions.size === 0 ? gathering : rest(gathering, [], undefined)
}

/** Goes on with the lists, of which the first is being filtered. */
async function rest(
  gathering: Gathering,
  lists: readonly (readonly [key: string, list: SlidingList])[],
  first: Promise<readonly OrderedRoom[]> | undefined,
): Promise<Windows> {
  for (const [place, [key, list]] of lists.entries()) {
    gathering.take(key, list, await (place === 0 && first ? first : gathering.choose(list)))
  }
  await gathering.subscribe()
  return gathering
}

/** Collects the rooms that a request asks for, list by list. */
class Gathering implements Windows {
  readonly counts = new Map<string, number>()
  readonly rooms = new Map<number, Wanting>()
  readonly #look: SlidingLook
  readonly #order: RoomOrder
  #join: ReturnType<typeof createJoining> | undefined
  #facts: FilterFacts | undefined

  constructor(look: SlidingLook, order: RoomOrder) {
    this.#look = look
    this.#order = order
  }

  /** What filters read; most lists need none of it. */
  get facts(): FilterFacts {
    this.#facts ??= createFilterFacts(this.#look, this.#order.joined)
    return this.#facts
  }

  /** The rooms that pass a list's filters. */
  choose(list: SlidingList): readonly OrderedRoom[] | Promise<readonly OrderedRoom[]> {
    return roomsThatPass(this.#look, this.#order, list.filters, this)
  }

  take(key: string, list: SlidingList, passing: readonly OrderedRoom[]): void {
    const needsAll = list.required.parts.some(({ needsAllMembers }) => needsAllMembers)
    const whole = needsAll ? passing.filter((room) => !lacksMembers(this.#look, room)) : passing
    this.counts.set(key, whole.length)
    for (const room of inRanges(whole, list)) this.#want(room, list, key)
  }

  async subscribe(): Promise<void> {
    if (this.#look.sliding.subscriptions.size === 0) return
    for (const [nid, wish] of await subscriptions(this.#look)) {
      const room = this.#order.find(nid)
      const needsAll = wish.required.parts.some(({ needsAllMembers }) => needsAllMembers)
      if (room && !(needsAll && lacksMembers(this.#look, room))) this.#want(room, wish)
    }
  }

  #want(room: OrderedRoom, wish: RoomWish, list?: string): void {
    const had = this.rooms.get(room.nid)
    const wanted = had ?? { room, wish, lists: [], isSubscribed: false }
    if (had) {
      this.#join ??= createJoining()
      wanted.wish = this.#join(had.wish, wish)
    } else this.rooms.set(room.nid, wanted)
    if (list === undefined) wanted.isSubscribed = true
    else wanted.lists.push(list)
  }
}

/** A room whose members are still to come is of no use to a client that wants all of them. */
const lacksMembers = (look: SlidingLook, { nid, isJoined }: OrderedRoom): boolean =>
  isJoined && hasPartialState(look, nid)

function inRanges(rooms: readonly OrderedRoom[], { ranges }: SlidingList): readonly OrderedRoom[] {
  const only = ranges?.length === 1 ? ranges[0]! : undefined
  if (ranges === undefined || (only?.[0] === 0 && only[1] >= rooms.length - 1)) return rooms
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
