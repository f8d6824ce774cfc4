import { changedWithin } from './device-changes.ts'
import { isJoinedIn } from './joined-room.ts'
import { hasPartialState, type Look, type RoomNews } from './look.ts'
import { isNewer } from './token.ts'
import type { RoomsOfUser, UserRoom } from './user-rooms.ts'

/** The rooms of a user at the end of a look. */
export interface Standing {
  readonly joined: ReadonlyMap<number, UserRoom>
  /** Other rooms that have news. */
  readonly entered: readonly RoomNews[]
  /** Rooms that the user left within the look. */
  readonly departed: readonly number[]
}

const NO_ROOMS: ReadonlySet<number> = new Set()
const NO_NEWS: readonly RoomNews[] = []
const NO_NUMBERS: readonly number[] = []

export function standingOf(look: Look, rooms: RoomsOfUser): Standing | Promise<Standing> {
  if (isUnchanged(look, rooms)) return { joined: rooms.joined, entered: NO_NEWS, departed: NO_NUMBERS }
  // A change that is written but not yet published belongs to the next answer.
  const early: number[] = []
  for (const [roomNid, { changedAt }] of rooms) if (isNewer(changedAt, look.now.events)) early.push(roomNid)
  if (early.length === 0) return standingAt(look, rooms, NO_ROOMS)
  return roomsJoinedBefore(look, early).then((joinedBefore) => standingAt(look, rooms, joinedBefore))
}

/** Whether a client knows of all memberships of its user, which is so for nearly every look after the first. */
function isUnchanged(look: Look, { changedAt, joined }: RoomsOfUser): boolean {
  const { since, request } = look
  // The newest change of one writer says nothing about another's.
  if (since?.events.length !== 1 || isNewer(changedAt, since.events)) return false
  if (!request.filter.room.state.lazyLoadMembers) {
    for (const roomNid of joined.keys()) if (hasPartialState(look, roomNid)) return false
  }
  return true
}

async function roomsJoinedBefore(look: Look, roomNids: readonly number[]): Promise<ReadonlySet<number>> {
  const found = new Set<number>()
  for (const roomNid of roomNids) if (await wasJoined(look, roomNid)) found.add(roomNid)
  return found
}

function standingAt(look: Look, rooms: ReadonlyMap<number, UserRoom>, joinedBefore: ReadonlySet<number>): Standing {
  const joined = new Map<number, UserRoom>()
  const entered: RoomNews[] = []
  const departed: number[] = []
  const isLazy = look.request.filter.room.state.lazyLoadMembers
  for (const [roomNid, membership] of rooms) {
    // A client that does not load members lazily gets the room once all its members are known.
    if (!isLazy && membership.membership === 'join' && hasPartialState(look, roomNid)) continue
    const isEarly = isNewer(membership.changedAt, look.now.events)
    if (isEarly ? joinedBefore.has(roomNid) : membership.membership === 'join') {
      joined.set(roomNid, membership)
      continue
    }
    if (isOfInterest(look, membership)) entered.push({ roomNid, membership, receipts: undefined, accountData: [] })
    if (look.since && changedWithin(membership, look.since, look.now)) departed.push(roomNid)
  }
  return { joined, entered, departed }
}

/** Whether the answer shows a room that the user is not in: new invitations and leaves, and in a first sync all standing invitations. */
function isOfInterest({ since, now, request }: Look, { membership, changedAt, forgotten }: UserRoom): boolean {
  if (forgotten || isNewer(changedAt, now.events)) return false
  if (since) return isNewer(changedAt, since.events)
  return membership === 'invite' || membership === 'knock' || request.filter.room.includeLeave
}

async function wasJoined({ sources, by, now }: Look, roomNid: number): Promise<boolean> {
  const room = await sources.registry.getByNid(roomNid)
  return isJoinedIn(await sources.states.at(room, now.events), room, by, sources)
}
