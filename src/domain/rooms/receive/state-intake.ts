import { setImmediate } from 'node:timers/promises'
import { type Membership, membershipOf } from '../../../core/event/content.ts'
import type { ReadPdu } from '../../../core/event/read.ts'
import { type EventId, type ServerName, serverOf } from '../../../core/ids.ts'
import { isObject, type ReadJson } from '../../../core/json.ts'
import { buildState, type StateMap } from '../../../core/state/trie.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { Outliers } from './outliers.ts'
import { isRefusal, type PduChecks } from './pdu-checks.ts'

/** Events by their index in a list. Each is read again on every call. */
export interface EventList {
  readonly length: number
  at(index: number): ReadJson | undefined
  /** A number or plain string member of an event, if it can be found without reading the event; otherwise undefined. */
  glance?(index: number, name: string): string | number | undefined
}

/** A room's state and the auth chain of that state, as a resident server gives them to a joining server. */
export interface RoomStateAnswer {
  readonly state: EventList
  readonly authChain: EventList
  /** Whether most members are missing from the state. */
  readonly areMembersOmitted?: boolean
  /** The servers in the room, if the resident server names them. */
  readonly servers?: readonly ServerName[]
}

/** The state that a server claims, unchecked, by numbers: first the events of the auth chain, then those of the state. */
export interface ClaimedState {
  /** Lowest depth first, so that auth events come before the events they authorise. */
  readonly order: Uint32Array
  /** Numbers of the state events that authorise a join, and of the auth chain's events with the same keys. */
  readonly judges: readonly number[]
  isState(index: number): boolean
  readonly at: (index: number) => ReadJson
}

/** Events of a large room that are checked and stored together. */
const EVENTS_AT_ONCE = 256
/** How many parts ahead are being checked, and in memory as objects. */
const PARTS_AHEAD = 3
const LOOKED_AT_ONCE = 256
/** Limit for the events of an auth chain under the few keys that authorise a join. */
const MAX_JUDGES = 1_000

/** @param judging the keys that authorise a join: type and state key with a zero byte between */
export async function orderClaimed(
  { authChain, state }: RoomStateAnswer,
  expect: PduChecks['expect'],
  judging: ReadonlySet<string>,
): Promise<ClaimedState> {
  const first = authChain.length
  const at = (index: number): ReadJson => (index < first ? authChain.at(index) : state.at(index - first))!
  const glance = (index: number, name: string) =>
    index < first ? authChain.glance?.(index, name) : state.glance?.(index - first, name)
  const depths = new Float64Array(first + state.length)
  const judges: number[] = []
  const servers = new Set<ServerName | undefined>()

  /** The event's depth, if it can be found without reading the event. */
  function depthAtAGlance(index: number): number | undefined {
    const sender = judging.size === 0 ? glance(index, 'sender') : undefined
    const isOfKnown = typeof sender === 'string' && servers.has(serverOf(sender))
    const depth = isOfKnown ? glance(index, 'depth') : undefined
    return typeof depth === 'number' ? depth : undefined
  }

  function look(index: number): ReadJson | undefined {
    const depth = depthAtAGlance(index)
    if (depth !== undefined) {
      depths[index] = depth
      return undefined
    }
    const read = at(index)
    if (!isObject(read.value)) return undefined
    const { type, state_key, sender, depth: stated } = read.value
    // A provisional order: depths above 2^53-1 in old rooms may lose their last digits here.
    depths[index] = typeof stated === 'number' || typeof stated === 'bigint' ? Number(stated) : 0
    if (judging.has(`${type}\0${state_key}`)) judges.push(index)
    if (typeof sender === 'string') servers.add(serverOf(sender))
    return read
  }

  for (let from = 0; from < depths.length; from += LOOKED_AT_ONCE) {
    if (from > 0) await setImmediate()
    const some = Array.from({ length: Math.min(LOOKED_AT_ONCE, depths.length - from) }, (_, n) => look(from + n))
    expect(some.filter((read) => read !== undefined))
  }
  const order = Uint32Array.from(depths.keys()).sort((a, b) => depths[a]! - depths[b]! || a - b)
  const isState = (index: number): boolean => index >= first
  const ofChain = judges.filter((index) => !isState(index)).slice(0, MAX_JUDGES)
  return { order, judges: [...ofChain, ...judges.filter(isState)], at, isState }
}

/**
 * Verifies and stores a claimed state, a part at a time. Returns the state that the events form.
 *
 * @param joinId our join, which is not part of the state before it
 * @param isWanted asked between parts; when it returns false, this resolves early
 */
export async function takeClaimed(
  { pduChecks, outliers }: { readonly pduChecks: PduChecks; readonly outliers: Outliers },
  room: Room,
  claimed: ClaimedState,
  joinId: EventId,
  isWanted: () => boolean = () => room.alive,
): Promise<ClaimedStateMap> {
  const state = new ClaimedStateMap(room)
  const left: ReadPdu[] = []
  const partAt = (at: number) => claimed.order.subarray(at, at + EVENTS_AT_ONCE)
  const checkPart = (at: number) => {
    const checking = pduChecks.checkEach(room, [...partAt(at)].map(claimed.at))
    checking.catch(() => {})
    return checking
  }
  // The signatures of the next parts are checked while this one is authorised and written.
  const ahead = Array.from({ length: PARTS_AHEAD }, (_, n) => checkPart(n * EVENTS_AT_ONCE))
  for (let at = 0; at < claimed.order.length && isWanted(); at += EVENTS_AT_ONCE) {
    const part = partAt(at)
    ahead.push(checkPart(at + PARTS_AHEAD * EVENTS_AT_ONCE))
    const checked = await ahead.shift()!
    const reads = new Map<EventId, ReadPdu>()
    for (const [index, read] of checked.entries()) {
      if (isRefusal(read)) continue
      reads.set(read.eventId, read)
      if (claimed.isState(part[index]!) && read.eventId !== joinId) state.expect(read.eventId)
    }
    left.push(...(await outliers.take(room, [...reads.values()], state.seen)))
  }
  // Auth events come before the events that cite them, unless a depth was wrong.
  if (left.length > 0) await outliers.take(room, left, state.seen)
  return state
}

/** The state that the listed events form as they are stored. None if two have the same key, or one is of another room. */
export class ClaimedStateMap {
  /** By event number. */
  readonly memberships = new Map<number, Membership>()
  readonly #room: Room
  readonly #expected = new Set<EventId>()
  /** By state key number. */
  readonly #nids: number[] = []
  #isContradictory = false

  constructor(room: Room) {
    this.#room = room
  }

  get map(): StateMap | undefined {
    return this.#isContradictory ? undefined : buildState(this.#nids)
  }

  expect(eventId: EventId): void {
    this.#expected.add(eventId)
  }

  readonly seen = (event: RoomEvent): void => {
    const { id, nid, roomNid, keyId, standing } = event
    if (!this.#expected.delete(id)) return
    const isForeign = roomNid !== this.#room.nid
    if (!isForeign && (standing === 'rejected' || keyId === undefined)) return
    const before = isForeign ? 0 : (this.#nids[keyId!] ?? 0)
    if (isForeign || (before !== 0 && before !== nid)) this.#isContradictory = true
    else this.#set(keyId!, nid)
    if (event.type === 'm.room.member') this.memberships.set(nid, membershipOf(event))
  }

  #set(keyId: number, nid: number): void {
    while (this.#nids.length < keyId) this.#nids.push(0)
    this.#nids[keyId] = nid
  }
}
