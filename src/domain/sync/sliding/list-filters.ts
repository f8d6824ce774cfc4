import { isRoomId } from '../../../core/ids.ts'
import { isObject, type JsonObject } from '../../../core/json.ts'
import { accountDataByRoom } from '../../../store/accounts/account-data.ts'
import { findRoomNids } from '../../../store/rooms/rooms.ts'
import { invitedState } from '../invited-room.ts'
import { writerOf } from '../token.ts'
import type { SlidingLook } from './look.ts'
import type { OrderedRoom } from './ordered-room.ts'
import type { ListFilters } from './request.ts'
import { factsIn, nameIn, type RoomFacts, typeIn } from './room-facts.ts'
import type { RoomOrder } from './room-order.ts'

/** What filters of several lists read, each once for all lists of a request. */
export interface FilterFacts {
  isTagged(): Promise<(roomId: string, tags: readonly string[]) => boolean>
  /** The ids of the direct children of those of the spaces that the user is in. */
  childrenOf(spaces: readonly string[]): Promise<ReadonlySet<string>>
}

export function createFilterFacts(look: SlidingLook, joined: RoomOrder['joined']): FilterFacts {
  let tagging: ReturnType<FilterFacts['isTagged']> | undefined
  const children = new Map<string, Promise<readonly string[]>>()
  return {
    isTagged() {
      tagging ??= tagsOf(look)
      return tagging
    },
    async childrenOf(spaces) {
      const found = new Set<string>()
      for (const space of spaces) {
        if (!children.has(space)) children.set(space, childrenIn(look, space, joined))
        for (const child of await children.get(space)!) found.add(child)
      }
      return found
    },
  }
}

/** The rooms that pass a list's filters, in their order (MSC4186, "filters"). */
export function roomsThatPass(
  look: SlidingLook,
  { rooms }: RoomOrder,
  filters: ListFilters,
  known: { readonly facts: FilterFacts },
): readonly OrderedRoom[] | Promise<readonly OrderedRoom[]> {
  const { isInvited, isDirect, spaces, tags, notTags } = filters
  let passing = rooms
  if (isInvited !== undefined)
    passing = passing.filter(({ membership }) => isInvited === (membership.membership === 'invite'))
  if (isDirect !== undefined) passing = passing.filter(({ nid }) => isDirect === look.direct.has(idOf(look, nid)))
  if (!tags && !notTags && !spaces) return byFacts(look, passing, filters)
  return byChoice(look, passing, filters, known.facts).then((chosen) => byFacts(look, chosen, filters))
}

const idOf = (look: SlidingLook, nid: number): string => look.own.recency.idOf(nid) ?? ''

/** By tags and spaces. */
async function byChoice(
  look: SlidingLook,
  rooms: readonly OrderedRoom[],
  { spaces, tags, notTags }: ListFilters,
  known: FilterFacts,
): Promise<readonly OrderedRoom[]> {
  let passing = rooms
  if (tags || notTags) {
    const isTagged = await known.isTagged()
    const isChosen = (id: string) => (!tags || isTagged(id, tags)) && !(notTags && isTagged(id, notTags))
    passing = passing.filter(({ nid }) => isChosen(idOf(look, nid)))
  }
  if (spaces) {
    const children = await known.childrenOf(spaces)
    passing = passing.filter(({ nid }) => children.has(idOf(look, nid)))
  }
  return passing
}

/** By what rooms are. */
function byFacts(
  look: SlidingLook,
  passing: readonly OrderedRoom[],
  filters: ListFilters,
): readonly OrderedRoom[] | Promise<readonly OrderedRoom[]> {
  const { isEncrypted, nameLike, roomTypes, notRoomTypes } = filters
  const isOfType = (type: string | null) => (!roomTypes || roomTypes.includes(type)) && !notRoomTypes?.includes(type)
  if (isEncrypted === undefined && nameLike === undefined) {
    return roomTypes || notRoomTypes ? ofTypes(look, passing, isOfType) : passing
  }
  return withFacts(look, passing, (facts) => {
    if (isEncrypted !== undefined && isEncrypted !== facts.isEncrypted) return false
    return isOfType(facts.type) && (nameLike === undefined || facts.name.toLowerCase().includes(nameLike))
  })
}

/** The rooms whose facts pass a test. */
async function withFacts(
  look: SlidingLook,
  rooms: readonly OrderedRoom[],
  isWanted: (facts: RoomFacts) => boolean,
): Promise<readonly OrderedRoom[]> {
  const { roomFacts } = look.own
  const known = rooms.map((room) => roomFacts.of(room))
  const unknown = rooms.filter((_, place) => known[place] === undefined)
  const learnt = unknown.length === 0 ? undefined : await roomFacts.learn(unknown, (room) => factsOfOther(look, room))
  return rooms.filter(({ nid }, place) => isWanted(known[place] ?? learnt!.get(nid)!))
}

/** The same where only the type counts, which a room keeps for ever. */
function ofTypes(
  look: SlidingLook,
  rooms: readonly OrderedRoom[],
  isWanted: (type: string | null) => boolean,
): readonly OrderedRoom[] | Promise<readonly OrderedRoom[]> {
  const { roomFacts } = look.own
  const isKnown = rooms.every(({ nid, isJoined }) => isJoined && roomFacts.typeOf(nid) !== undefined)
  return isKnown ? rooms.filter(({ nid }) => isWanted(roomFacts.typeOf(nid)!)) : ofLearntTypes(look, rooms, isWanted)
}

async function ofLearntTypes(
  look: SlidingLook,
  rooms: readonly OrderedRoom[],
  isWanted: (type: string | null) => boolean,
): Promise<readonly OrderedRoom[]> {
  const { roomFacts } = look.own
  const types = rooms.map(({ nid, isJoined }) => (isJoined ? roomFacts.typeOf(nid) : undefined))
  const unknown = rooms.filter(({ isJoined }, place) => isJoined && types[place] === undefined)
  const others = rooms.filter(({ isJoined }) => !isJoined)
  const [learnt, wantedOthers] = await Promise.all([
    unknown.length === 0
      ? undefined
      : roomFacts.learnTypes(
          look.by.userNid,
          unknown.map(({ nid }) => nid),
        ),
    others.length === 0 ? others : withFacts(look, others, ({ type }) => isWanted(type)),
  ])
  const isOtherWanted = new Set(wantedOthers)
  return rooms.filter((room, place) => {
    if (!room.isJoined) return isOtherWanted.has(room)
    const type = types[place]
    return isWanted(type === undefined ? learnt!.get(room.nid)! : type)
  })
}

async function tagsOf({ sources, by }: SlidingLook): Promise<(roomId: string, tags: readonly string[]) => boolean> {
  const byRoom = await accountDataByRoom(sources.db, by.userNid, 'm.tag')
  return (roomId, wanted) => {
    const tags = byRoom.get(roomId)?.tags
    return isObject(tags) && wanted.some((tag) => Object.hasOwn(tags, tag))
  }
}

/** The ids of a space's direct children; none if the user is not in it. */
async function childrenIn(
  { sources }: SlidingLook,
  spaceId: string,
  joined: RoomOrder['joined'],
): Promise<readonly string[]> {
  const [row] = isRoomId(spaceId) ? await findRoomNids(sources.db, [spaceId]) : []
  if (row === undefined || !joined.has(row.room_nid)) return []
  const space = await sources.registry.getByNid(row.room_nid)
  const keys = [...space.keys.ofType('m.space.child')].map(([child]) => child)
  const events = await Promise.all(keys.map((child) => space.stateEvent('m.space.child', child)))
  return keys.filter((_, index) => Array.isArray(events[index]?.content.via))
}

/** For a room that the user is not in: what they saw last of it, or what the invitation shows. */
async function factsOfOther(look: SlidingLook, { nid, membership, wasIn, leftAt }: OrderedRoom): Promise<RoomFacts> {
  const { sources, now } = look
  const room = await sources.registry.getByNid(nid)
  const isOver = membership.membership === 'leave' || membership.membership === 'ban'
  const leaving = isOver ? (await sources.events.load([membership.eventNid])).get(membership.eventNid) : undefined
  // An invitation to a room of others' comes with all that is known of it. In one of ours, what came after its end is not the user's.
  if (wasIn || (leaving && leaving.standing !== 'outlier')) {
    const end = leftAt ?? membership.changedAt
    return factsIn(room, await sources.states.at(room, now.events.with(writerOf(end), end)))
  }
  const [state] = await invitedState(look, room, membership.eventNid)
  const content = (type: string) => state.find((event) => event.type === type)?.content as JsonObject | undefined
  const isEncrypted = content('m.room.encryption') !== undefined
  return { isEncrypted, type: typeIn(content('m.room.create')), name: nameIn(content('m.room.name')) }
}
