import { diffState, forEachState, type StateMap } from '../../../core/state/trie.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import type { StateKeyName } from '../../rooms/room/state-keys.ts'
import type { EventPosition } from '../token.ts'
import type { SlidingLook } from './look.ts'
import { isRequired, namedKeys, type RequiredState } from './required-state.ts'

const MEMBER = 'm.room.member'

export interface StateQuestion {
  /** The state that the client has; undefined if it begins with the room. */
  readonly known: StateMap | undefined
  readonly end: StateMap
  readonly required: RequiredState
  /** What was sent before; undefined if the client begins with the room. */
  readonly requiredBefore: RequiredState | undefined
  readonly timeline: readonly RoomEvent[]
  readonly limited: boolean
  /** Whether the connection's record says another thing of the room after this answer. */
  readonly isRecorded: boolean
  /** The client's position in the room. */
  readonly since: EventPosition | undefined
}

export interface StateChanges {
  /** The numbers of the events to send. */
  readonly nids: ReadonlySet<number>
  readonly removed: readonly StateKeyName[]
  /** The types of all state that changed, whether it is asked for or not. Undefined if the client begins with the room. */
  readonly types: ReadonlySet<string> | undefined
}

/** What a client needs of a room's state (MSC4186, "required_state"): current state, never that before the timeline. */
export function stateChanges(look: SlidingLook, room: Room, question: StateQuestion): StateChanges {
  const { known, end, required, requiredBefore, limited } = question
  const me = look.by.userId
  const isUnchanged = known === end && (requiredBefore === undefined || requiredBefore.key === required.key)
  if (isUnchanged) return required.isLazy ? lazyChanges(look, room, question) : NO_CHANGES
  const nids = new Set<number>()
  const removed: StateKeyName[] = []
  const members = new Map<string, number>()
  let types: Set<string> | undefined
  if (known === undefined) {
    for (const { nid } of wanted(room, end, required, me)) nids.add(nid)
  } else {
    const changed = new Set<string>()
    types = changed
    diffState(known, end, (keyId, _, nid) => {
      const name = room.keys.nameOf(keyId)
      const { type, stateKey } = name
      changed.add(type)
      // A client that knows of no gap keeps its list of members.
      const isNews = required.isLazy && !limited && type === MEMBER
      if (!isNews && !isRequired(required, type, stateKey, me)) return
      if (nid === 0) removed.push(name)
      else nids.add(nid)
      if (type === MEMBER && nid !== 0) members.set(stateKey, nid)
    })
    if (requiredBefore && requiredBefore.key !== required.key) {
      for (const { nid, type, stateKey } of wanted(room, end, required, me)) {
        if (!isRequired(requiredBefore, type, stateKey, me)) nids.add(nid)
      }
    }
  }
  if (!required.isLazy && known === undefined) look.own.slidingMembers.forget(look.connection, room.nid)
  if (required.isLazy) for (const nid of lazyMembers(look, room, question, members)) nids.add(nid)
  return { nids, removed, types }
}

const NO_CHANGES: StateChanges = { nids: new Set(), removed: [], types: new Set() }
const NO_MEMBERS: ReadonlyMap<string, number> = new Map()

/** Nothing changed, but the timeline may show members whom the client was not sent. */
function lazyChanges(look: SlidingLook, room: Room, question: StateQuestion): StateChanges {
  const members = lazyMembers(look, room, question, NO_MEMBERS)
  return members.length === 0 ? NO_CHANGES : { nids: new Set(members), removed: [], types: NO_CHANGES.types }
}

interface Wanted extends StateKeyName {
  readonly nid: number
}

/** The state that is asked for, lazily loaded members aside. */
function wanted(room: Room, state: StateMap, required: RequiredState, me: string): readonly Wanted[] {
  const found: Wanted[] = []
  const named = namedKeys(required, me)
  if (named === undefined) {
    forEachState(state, (keyId, nid) => {
      const { type, stateKey } = room.keys.nameOf(keyId)
      if (isRequired(required, type, stateKey, me)) found.push({ type, stateKey, nid })
    })
    return found
  }
  for (const [type, stateKey] of named) {
    const nid = room.stateNid(state, type, stateKey)
    if (nid !== 0 && isRequired(required, type, stateKey, me)) found.push({ type, stateKey, nid })
  }
  return found
}

/** The members whom the timeline shows, without those that the connection was already sent. */
function lazyMembers(
  { own, connection, record, now }: SlidingLook,
  room: Room,
  { end, timeline, known, since, isRecorded }: StateQuestion,
  news: ReadonlyMap<string, number>,
): number[] {
  // An answer that says more without any news is told from the one before it by the record's version alone.
  const from = known === undefined || since === undefined ? undefined : [record.version, ...since]
  const to = [record.version + (isRecorded ? 1 : 0), ...now.events]
  const sent = own.slidingMembers.of(connection, room.nid, from)
  let needed: Map<string, number> | undefined = news.size === 0 ? undefined : new Map(news)
  const show = (userId: string): void => {
    const nid = room.stateNid(end, MEMBER, userId)
    if (nid === 0 || sent.nidOf(userId) === nid) return
    needed ??= new Map()
    needed.set(userId, nid)
  }
  for (const { sender, type, pdu } of timeline) {
    show(sender)
    if (type === MEMBER && typeof pdu.state_key === 'string') show(pdu.state_key)
  }
  own.slidingMembers.record(connection, room.nid, from, needed ?? NO_MEMBERS, to)
  return needed === undefined ? [] : [...needed.values()]
}
