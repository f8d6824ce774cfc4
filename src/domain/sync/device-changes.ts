import { membershipOf } from '../../core/event/content.ts'
import { isUserId, type UserId } from '../../core/ids.ts'
import { diffState } from '../../core/state/trie.ts'
import { deviceListsChanged } from '../../store/keys/device-lists.ts'
import { joinedIn, joinedMembers } from '../../store/rooms/rooms.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { knownState } from './joined-room.ts'
import { type Span, wasResyncedWithin } from './look.ts'
import { isNewer, type StreamPosition } from './token.ts'
import type { UserRoom } from './user-rooms.ts'

/** What a client does with the device lists that it keeps (client-server API, "Tracking the device list for a user"). */
export interface DeviceChanges {
  /** Users whose keys the client must fetch again: their keys changed, or they now share a room with the user. */
  readonly changed: readonly UserId[]
  /** Users whose keys the client can forget: they share no room with the user any more. */
  readonly left: readonly UserId[]
}

/** The same, with the numbers of the users who now share a room with the user. */
export interface NeighbourChanges extends DeviceChanges {
  readonly neighbours: readonly number[]
}

type Since = Span & { readonly since: StreamPosition }

/** The numbers of users who came into the user's rooms, and of those who went. */
interface Moves {
  readonly came: Set<number>
  readonly went: Set<number>
}

interface RoomMoves extends Moves {
  /** Joined before and after, by another event. */
  readonly stayed: Set<number>
  /** Whether the user was away in between. Then all other members count as new, as in a room that the user entered. */
  readonly isBack: boolean
}

const NONE: NeighbourChanges = { changed: [], left: [], neighbours: [] }
/** How many profile changes are followed back in search of a leave between them. A user with more counts as one who left. */
const MAX_PROFILE_CHANGES = 20

/**
 * The device lists that changed for a user. A span without changes of keys or memberships costs no query.
 *
 * @param joined the rooms that the user is joined to at the end of the span
 * @param active those of them that have events in the span, or more
 * @param departed other rooms, in which the user's membership changed in the span
 */
export function deviceChanges(
  span: Span,
  joined: ReadonlyMap<number, UserRoom>,
  active: readonly number[],
  departed: readonly number[],
): NeighbourChanges | Promise<NeighbourChanges> {
  const { since, sources, by } = span
  if (!since) return NONE
  const moved = active.filter((nid) => sources.roomMembers.since(nid, since.events[0] ?? 0) !== false)
  const { rooms, users } = sources.deviceLists
  const suspects = rooms.isQuietSince(since.ledger)
    ? []
    : [...joined.keys()].filter((nid) => rooms.since(nid, since.ledger) !== false)
  const isOwn = users.since(by.userNid, since.ledger) !== false
  if (moved.length + departed.length + suspects.length === 0 && !isOwn) return NONE
  return changesOf({ ...span, since }, joined, { moved, departed, suspects, isOwn })
}

/** Where changes may be. */
interface Hints {
  /** Rooms of the user where memberships changed. */
  readonly moved: readonly number[]
  readonly departed: readonly number[]
  /** Rooms where a member's keys changed. */
  readonly suspects: readonly number[]
  /** Whether the user's own keys changed, or keys of others that only the user sees. */
  readonly isOwn: boolean
}

async function changesOf(span: Since, joined: ReadonlyMap<number, UserRoom>, hints: Hints): Promise<NeighbourChanges> {
  const { moved, departed } = hints
  const [keys, moves] = await Promise.all([
    changedKeys(span, hints),
    moved.length + departed.length === 0 ? undefined : movesIn(span, moved, departed),
  ])
  if (keys.length === 0 && (moves === undefined || moves.came.size + moves.went.size === 0)) return NONE
  return neighbourChanges(span, joined, keys, moves ?? { came: new Set(), went: new Set() })
}

async function changedKeys({ sources, by, since, now }: Since, { suspects, isOwn }: Hints): Promise<number[]> {
  if (suspects.length === 0 && !isOwn) return []
  const between = { after: since.ledger, upTo: now.ledger }
  return deviceListsChanged(sources.db, { viewerNid: by.userNid, roomNids: suspects, ...between })
}

/** Whether a user's membership of a room changed between two positions. */
export function changedWithin({ changedAt }: UserRoom, since: StreamPosition, now: StreamPosition): boolean {
  return isNewer(changedAt, since.events) && !isNewer(changedAt, now.events)
}

/** The users who came to share a room with the user, or shared one before, in rooms where memberships changed. */
async function movesIn(span: Since, moved: readonly number[], departed: readonly number[]): Promise<Moves> {
  const { sources, since } = span
  const came = new Set<number>()
  const went = new Set<number>()
  const entered: number[] = []
  const left: number[] = []
  await Promise.all([
    ...moved.map(async (nid) => {
      const room = await sources.registry.getByNid(nid)
      // After a resync the known members are as new as in a room that the user entered, even those who were there before.
      const moves = wasResyncedWithin(span, nid) ? undefined : await movesOf(span, room)
      if (moves === undefined) return void entered.push(nid)
      if (moves.isBack) entered.push(nid)
      for (const user of moves.came) came.add(user)
      for (const user of moves.went) went.add(user)
    }),
    ...departed.map(async (nid) => {
      const moves = await movesOf(span, await sources.registry.getByNid(nid))
      if (moves === undefined) return
      left.push(nid)
      // The user learns nothing of users who came after their own leave.
      for (const user of [...moves.went, ...moves.stayed]) went.add(user)
    }),
  ])
  const isLeft = new Set(left)
  const members = entered.length + left.length === 0 ? [] : await joinedMembers(sources.db, [...entered, ...left])
  for (const { room_nid, user_nid, changed_at } of members) {
    if (!isLeft.has(room_nid)) came.add(user_nid)
    else if (!isNewer(changed_at, since.events)) went.add(user_nid)
  }
  return { came, went }
}

/** Who came into a room and who left it; undefined when the user was not in it at the beginning. */
async function movesOf(span: Since, room: Room): Promise<RoomMoves | undefined> {
  const known = await knownState(span, room)
  if (known === undefined) return undefined
  const changes: { userId: UserId; before: number; after: number }[] = []
  diffState(known, room.committed.state, (keyId, before, after) => {
    const { type, stateKey } = room.keys.nameOf(keyId)
    if (type === 'm.room.member' && isUserId(stateKey)) changes.push({ userId: stateKey, before, after })
  })
  const moves = { came: new Set<number>(), went: new Set<number>(), stayed: new Set<number>() }
  if (changes.length === 0) return { ...moves, isBack: false }
  const { sources, by } = span
  const [events, nids] = await Promise.all([
    sources.events.load(changes.flatMap(({ before, after }) => [before, after]).filter((nid) => nid !== 0)),
    sources.users.intern(changes.map(({ userId }) => userId)),
  ])
  let isBack = false
  for (const { userId, before, after } of changes) {
    const [was, is] = [before, after].map((nid) => (nid === 0 ? 'leave' : membershipOf(events.get(nid))))
    const wasAway = was === 'join' && is === 'join' && (await leftBetween(sources, before, events.get(after)))
    if (wasAway && userId === by.userId) isBack = true
    // Clients encrypt for invited users too, where these may read from their invitation on.
    const isNew =
      wasAway || (is === 'join' && was !== 'join') || (is === 'invite' && was !== 'join' && was !== 'invite')
    if (isNew) moves.came.add(nids.get(userId)!)
    if (was === 'join') (is === 'join' ? moves.stayed : moves.went).add(nids.get(userId)!)
  }
  return { ...moves, isBack }
}

/** Whether a user who is joined in both events was not joined at some time in between. */
async function leftBetween(
  { events }: Pick<Span['sources'], 'events'>,
  before: number,
  after: RoomEvent | undefined,
): Promise<boolean> {
  let at = after
  for (let steps = 0; at?.replacesNid !== undefined && at.replacesNid !== before; steps++) {
    if (steps === MAX_PROFILE_CHANGES) return true
    at = (await events.load([at.replacesNid])).get(at.replacesNid)
    if (membershipOf(at) !== 'join') return true
  }
  return at?.replacesNid === undefined
}

/** Which of those who moved are new neighbours, and which are no neighbours any more. */
async function neighbourChanges(
  { sources, by, since }: Since,
  joined: ReadonlyMap<number, UserRoom>,
  keys: readonly number[],
  { came, went }: Moves,
): Promise<NeighbourChanges> {
  const moved = new Set([...came, ...went])
  const sharing = new Set<number>()
  const sharingBefore = new Set<number>()
  const shared = moved.size === 0 ? [] : await joinedIn(sources.db, [...moved], [...joined.keys()])
  for (const { room_nid, user_nid, changed_at } of shared) {
    sharing.add(user_nid)
    const isOld = !isNewer(changed_at, since.events) && !isNewer(joined.get(room_nid)!.changedAt, since.events)
    if (isOld) sharingBefore.add(user_nid)
  }
  const left = [...went].filter((nid) => !sharing.has(nid) && nid !== by.userNid)
  const neighbours = [...came].filter((nid) => !sharingBefore.has(nid) && nid !== by.userNid)
  const changed = new Set([...keys, ...neighbours])
  for (const nid of left) changed.delete(nid)
  const ids = await sources.users.idsOf([...changed, ...left])
  return { changed: [...changed].map((nid) => ids.get(nid)!), left: left.map((nid) => ids.get(nid)!), neighbours }
}
