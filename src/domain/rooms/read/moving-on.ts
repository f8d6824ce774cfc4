import { displayNameOf, membershipOf } from '../../../core/event/content.ts'
import { isUserId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import { integerOf } from '../../../core/large-integers.ts'
import { getState, setState } from '../../../core/state/trie.ts'
import type { EventRow } from '../../../store/events/events.ts'
import type { RoomNews } from '../../../store/rooms/room-news.ts'
import { MAX_EVENTS_MOVED_ON } from '../../limits/cluster.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Extremity, Head, StateChange } from '../room/head.ts'
import type { MembershipChange, Room } from '../room/room.ts'
import { RoomEvent } from '../room/room-event.ts'
import { relationTargets } from '../write/relation-batch.ts'

/** A copy of a room, and the events that were read of it. */
export interface RoomCopy {
  readonly room: Room
  readonly events: EventCache
}

/**
 * Brings a copy of a room up to date, if nothing but new events came to it. Each write of a room raises the version of its head by one for
 * each of its new events, and by at least one. So if as many events came as the version was raised by, nothing else was written.
 *
 * @returns false if the copy must be read anew; then it is as it was
 */
export async function moveOn(
  { room, events }: RoomCopy,
  { room: now, events: rows }: RoomNews,
  serverName: ServerName,
): Promise<boolean> {
  const from = room.committed
  if ((now.purged_to ?? Number.NEGATIVE_INFINITY) !== room.purgedTo) return false
  const count = now.head_version - from.version
  if (count === 0) return true
  if (count > MAX_EVENTS_MOVED_ON || rows.length !== count || !rows.every(isPlain)) return false
  const fresh = rows.map((row) => knownEvent(events, row) ?? new RoomEvent(row))
  const extremities = extremitiesOf(room, now.extremities, fresh)
  const changes = changesOf(room, fresh)
  if (extremities === undefined || changes === undefined || fresh.at(-1)?.pos !== now.last_pos) return false
  if (now.state_chain !== from.chain || now.state_seq !== from.seq + changes.length) return false
  const members = await membersOf({ room, events }, fresh, serverName)
  if (members === undefined) return false

  let { state } = from
  for (const { keyId, eventNid } of changes) state = setState(state, keyId, eventNid)
  const head = {
    version: now.head_version,
    extremities,
    merged: now.merged ?? extremities.length,
    depth: integerOf(BigInt(now.depth)),
    pos: now.last_pos,
    nid: now.last_nid,
    notifiable: now.notifiable,
    chain: from.chain,
    seq: now.state_seq,
    state,
    tip: Math.max(from.tip, now.state_seq),
    lastChain: from.lastChain,
  }
  for (const event of fresh) {
    events.put(event)
    if (event.isState) room.keys.intern(event.type, event.pdu.state_key!)
  }
  room.pending = head
  room.advance(fresh, changes, head)
  for (const member of members) room.recordMember(member)
  events.related(relationTargets({ events: fresh, promoted: [] }))
  return true
}

/** Redactions change other events; what came late, was refused, or was redacted early is not at the tip of the room. */
function isPlain(row: EventRow): boolean {
  if (row.standing !== null || row.redacted_by !== null) return false
  return row.type !== 'm.room.redaction' && (row.stream_pos ?? 0) >= 0
}

/** Another reader may have read it later than this. */
function knownEvent(events: EventCache, { event_nid: nid, room_pos: pos }: EventRow): RoomEvent | undefined {
  const known = events.get(nid)
  return known?.pos === pos ? known : undefined
}

function extremitiesOf(room: Room, nids: readonly number[], fresh: readonly RoomEvent[]): Extremity[] | undefined {
  const known = new Map(room.committed.extremities.map((one) => [one.nid, one]))
  for (const event of fresh)
    known.set(event.nid, {
      nid: event.nid,
      id: event.id,
      reference: event.reference(room.version),
      after: event.pointAfter,
    })
  const found = nids.flatMap((nid) => known.get(nid) ?? [])
  return found.length === nids.length ? found : undefined
}

/**
 * What the events change in the current state. Undefined where the room has branches, whose states were resolved: also for the place of a
 * message alone, when the current state stays as it is. What is remembered of who sees what knows no such place.
 */
function changesOf({ committed, keys }: Room, fresh: readonly RoomEvent[]): StateChange[] | undefined {
  const changes: StateChange[] = []
  const { chain } = committed
  let { seq, state } = committed
  let newKeys = keys.size
  for (const event of fresh) {
    const { keyId, stateChain, stateSeq, isOnTip, nid: eventNid, type } = event
    if (keyId === undefined) {
      if (!(stateChain === chain && stateSeq <= seq) && !isOfExtremity(committed, event)) return undefined
      continue
    }
    if (!isOnTip || stateChain !== chain || stateSeq !== seq) return undefined
    const known = keys.idOf(type, event.pdu.state_key!)
    // Two of them may be of the same new key.
    if (known === undefined ? keyId > newKeys : keyId !== known) return undefined
    if (keyId === newKeys) newKeys++
    seq++
    changes.push({ chain, seq, keyId, eventNid, before: getState(state, keyId) })
    state = setState(state, keyId, eventNid)
  }
  return changes
}

/** Whether the state before an event is one that an earlier event left. */
function isOfExtremity({ extremities }: Head, { pointBefore: { chain, seq } }: RoomEvent): boolean {
  return extremities.some(({ after }) => after.chain === chain && after.seq === seq)
}

/** A number that no user has. */
const NOBODY = 0

/** The memberships that the events change. Undefined if one is of somebody whose number is not known here. */
async function membersOf(
  { room, events }: RoomCopy,
  fresh: readonly RoomEvent[],
  serverName: ServerName,
): Promise<MembershipChange[] | undefined> {
  const moves = fresh.filter(({ isState, type }) => isState && type === 'm.room.member')
  if (moves.length === 0) return []
  const known = new Map(fresh.map((event) => [event.nid, event]))
  const earlier = moves.flatMap(({ replacesNid = 0 }) =>
    replacesNid === 0 || known.has(replacesNid) ? [] : replacesNid,
  )
  if (earlier.length > 0) for (const [nid, event] of await events.load(earlier)) known.set(nid, event)
  const numbers = new Map<string, number>(
    [...room.localMembers.values()].map(({ userId, userNid }) => [userId, userNid]),
  )
  const members: MembershipChange[] = []
  for (const event of moves) {
    const { sender, senderNid, nid, replacesNid, streamPos } = event
    const userId = event.pdu.state_key as UserId
    if (!isUserId(userId)) continue
    numbers.set(sender, senderNid)
    const replaced = replacesNid === undefined ? undefined : known.get(replacesNid)
    if (replacesNid !== undefined && replaced === undefined) return undefined
    const before = replaced && membershipOf(replaced)
    const after = membershipOf(event)
    // Only of those who are joined is the number kept.
    const userNid = numbers.get(userId) ?? (before === 'join' || after === 'join' ? undefined : NOBODY)
    if (userNid === undefined) return undefined
    members.push({
      userNid,
      userId,
      isLocal: serverOf(userId) === serverName,
      displayName: displayNameOf(event),
      before,
      after,
      eventNid: nid,
      changedAt: streamPos,
    })
  }
  return members
}
