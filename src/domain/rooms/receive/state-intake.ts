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

/** Events by their place in a list; each may be read anew whenever it is asked for. */
export interface EventList {
  readonly length: number
  at(index: number): ReadJson | undefined
  /** A member's number or plain string as it is seen without reading the event; undefined where that takes reading. */
  glance?(index: number, name: string): string | number | undefined
}

/** A room's state, and the auth chain of that state, as a server of the room gives them to one that joins. */
export interface RoomStateAnswer {
  readonly state: EventList
  readonly authChain: EventList
  /** Most members are not among the state. */
  readonly areMembersOmitted?: boolean
  /** The servers that take part, where the server names them. */
  readonly servers?: readonly ServerName[]
}

/** The state that a server claims, unchecked, by numbers: those of the auth chain, and after them those of the state. */
export interface ClaimedState {
  /** The shallowest first: what authorises an event lies before it. */
  readonly order: Uint32Array
  /** Numbers of what the room would judge a join by, and of what the auth chain has under the same keys. */
  readonly judges: readonly number[]
  isState(index: number): boolean
  readonly at: (index: number) => ReadJson
}

/** Of a large room so many events are judged together. */
const EVENTS_AT_ONCE = 256
/** So many such parts more are in memory as objects. */
const PARTS_AHEAD = 3
const LOOKED_AT_ONCE = 256
/** Events of an auth chain under the few keys by which a join is judged. */
const MAX_JUDGES = 1_000

/** @param judging keys, type and state key with a zero between, under which the judges are */
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

  /** Its depth, where no more is wanted of it than that. */
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
    // An order to begin with: what old rooms have beyond 2^53-1 may lose its last digits here.
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
 * Verifies and stores the state that is claimed, a part at a time. Gives the state that it makes.
 *
 * @param joinId of our join, which is no part of the state before it
 * @param isWanted asked between parts: once it is not, this resolves early
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
  const vetPart = (at: number) => {
    const vetting = pduChecks.checkEach(room, [...partAt(at)].map(claimed.at))
    vetting.catch(() => {})
    return vetting
  }
  // The signatures of what is next are checked while others are judged and written.
  const ahead = Array.from({ length: PARTS_AHEAD }, (_, n) => vetPart(n * EVENTS_AT_ONCE))
  for (let at = 0; at < claimed.order.length && isWanted(); at += EVENTS_AT_ONCE) {
    const part = partAt(at)
    ahead.push(vetPart(at + PARTS_AHEAD * EVENTS_AT_ONCE))
    const vetted = await ahead.shift()!
    const reads = new Map<EventId, ReadPdu>()
    for (const [index, read] of vetted.entries()) {
      if (isRefusal(read)) continue
      reads.set(read.eventId, read)
      if (claimed.isState(part[index]!) && read.eventId !== joinId) state.expect(read.eventId)
    }
    left.push(...(await outliers.take(room, [...reads.values()], state.seen)))
  }
  // Who is cited comes before who cites, unless somebody was wrong about depths.
  if (left.length > 0) await outliers.take(room, left, state.seen)
  return state
}

/** The state that a list of events makes, as they come to be known: none when two are for the same key, or one is of another room. */
export class ClaimedStateMap {
  /** By the number of its event. */
  readonly memberships = new Map<number, Membership>()
  readonly #room: Room
  readonly #expected = new Set<EventId>()
  /** By key. */
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
