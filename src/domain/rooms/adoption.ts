import { setImmediate } from 'node:timers/promises'
import type { StateLookup } from '../../core/auth/context.ts'
import { authorise } from '../../core/auth/rules.ts'
import { authEventKeys, type StateKeyPair } from '../../core/auth/select.ts'
import { createContentOf, type Membership, membershipOf } from '../../core/event/content.ts'
import type { Pdu } from '../../core/event/format.ts'
import type { ReadPdu } from '../../core/event/read.ts'
import type { EventId, RoomId, ServerName } from '../../core/ids.ts'
import { isObject, type ReadJson } from '../../core/json.ts'
import type { RoomVersion } from '../../core/room-version.ts'
import { EMPTY_STATE, getState, type StateMap, setState } from '../../core/state/trie.ts'
import type { Database } from '../../store/db.ts'
import { nextRoomNid, setRoomVersion } from '../../store/rooms.ts'
import { authIdsOf, impliedIds, prevIdsOf, reasonOf } from './cited.ts'
import type { EventCache } from './event-cache.ts'
import { Intake } from './intake.ts'
import type { Lanes } from './lanes.ts'
import type { Outliers } from './outliers.ts'
import type { Placing } from './placing.ts'
import type { Questions } from './questions.ts'
import { dropped, type Received, receivedAs, settled } from './received.ts'
import type { RoomRegistry } from './registry.ts'
import { emptyRoom, type Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'
import { isRefusal, type Vetter } from './vet.ts'

/** Events by their place in a list; each may be read anew whenever it is asked for. */
export interface EventList {
  readonly length: number
  at(index: number): ReadJson | undefined
}

/** A room's state, and the auth chain of that state, as a server of the room gives them to one that joins. */
export interface ToldRoom {
  readonly state: EventList
  readonly authChain: EventList
}

/** Takes part in a room of other servers: by what a resident server tells of it, and a join of ours that it has accepted. */
export type Adopt = (
  resident: ServerName,
  version: RoomVersion,
  roomId: RoomId,
  join: ReadJson,
  told: ToldRoom,
) => Promise<Received>

export interface AdoptionParts {
  readonly db: Database
  readonly events: EventCache
  readonly registry: RoomRegistry
  readonly questions: Questions
  readonly vetter: Vetter
  readonly outliers: Outliers
  readonly placing: Placing
  /** In which the events of one room come in. */
  readonly lanes: Lanes<RoomId>
}

/** How often a join is placed anew because others wrote to its room. */
const MAX_ATTEMPTS = 8
/** Of a large room so many events are in memory as objects. */
const EVENTS_AT_ONCE = 512
const LOOKED_AT_ONCE = 256
/** Events of an auth chain under the few keys by which a join is judged. */
const MAX_JUDGES = 1_000

const OTHER_VERSION = 'the room is of another version'

export function createAdoption(parts: AdoptionParts): Adopt {
  const { registry, vetter, outliers, placing, lanes } = parts

  /** A room that is to be, or that we took part in before; undefined where that one was of another version. */
  async function roomToJoin(roomId: RoomId, version: RoomVersion): Promise<Room | undefined> {
    const known = await registry.get(roomId)
    if (!known) return emptyRoom({ nid: await nextRoomNid(parts.db), id: roomId, version, events: parts.events })
    if (known.version === version) return known
    if (known.pending.extremities.length > 0) return undefined
    // Whoever invited us said so, and that is nobody's word: the room's own create event is.
    await parts.db.tx((tx) => setRoomVersion(tx, known.nid, version.id))
    registry.drop(known)
    return registry.get(roomId)
  }

  /** Verifies and stores what is told, a part at a time. Gives the state that it makes. */
  async function takeTold(room: Room, told: Told, joinId: EventId): Promise<ToldStateMap> {
    const state = new ToldStateMap(room)
    const left: ReadPdu[] = []
    const partAt = (at: number) => told.order.subarray(at, at + EVENTS_AT_ONCE)
    const vetPart = (at: number) => vetter.vetEach(room, [...partAt(at)].map(told.at))
    let next = vetPart(0)
    for (let at = 0; at < told.order.length && room.alive; at += EVENTS_AT_ONCE) {
      const part = partAt(at)
      const vetted = await next
      // The signatures of the next are checked while these are judged and written.
      next = vetPart(at + EVENTS_AT_ONCE)
      next.catch(() => {})
      const reads = new Map<EventId, ReadPdu>()
      for (const [index, read] of vetted.entries()) {
        if (isRefusal(read)) continue
        reads.set(read.eventId, read)
        if (told.isState(part[index]!) && read.eventId !== joinId) state.expect(read.eventId)
      }
      left.push(...(await outliers.take(room, [...reads.values()], state.seen)))
    }
    // Who is cited comes before who cites, unless somebody was wrong about depths.
    if (left.length > 0) await outliers.take(room, left, state.seen)
    return state
  }

  async function join(resident: ServerName, room: Room, read: ReadPdu, told: Told): Promise<Received | 'moved'> {
    const { eventId, pdu } = read
    const wasStrange = room.pending.extremities.length === 0
    const { map: state, memberships } = await takeTold(room, told, eventId)
    if (!room.alive) return 'moved'
    const prevIds = prevIdsOf(pdu)
    const known = await outliers.find(room, [eventId, ...authIdsOf(pdu), ...impliedIds(room), ...prevIds])
    if (known.get(eventId)?.hasPlace) return receivedAs(eventId, 'known')
    if (!state || room.stateNid(state, 'm.room.create', '') === 0)
      return dropped('the state of the room could not be had', eventId)
    if (!authIdsOf(pdu).every((id) => known.has(id))) return dropped('its auth events could not be had', eventId)
    const intake = new Intake(parts, room, resident)
    await intake.lookUp([])
    const prevs = prevIds.flatMap((id) => known.get(id) ?? []).filter((event) => isPlacedIn(room, event))
    // While others of ours are in the room we know its state ourselves.
    const isKnownHere = room.localMembers.size > 0 && prevs.length === prevIds.length
    const placed = await placing.place(room, read, {
      outlier: known.get(eventId),
      prevs,
      passedOver: new Set(),
      missingBehind: [],
      cited: known,
      ...(isKnownHere ? { told: undefined } : { told: state, toldMemberships: memberships }),
      isReferenced: false,
      redactions: [],
      target: undefined,
      isOwnJoin: true,
      isOffered: false,
    })
    if (placed === 'moved') return 'moved'
    if ('standing' in placed) return receivedAs(eventId, placed.standing, placed.reason)
    const [one] = await settled([placed])
    // What invitations counted for in memory, while the room was not known, is read anew.
    if (wasStrange) registry.drop(room)
    return one?.outcome === 'committed' ? receivedAs(eventId, placed.event.standing, placed.event.reason) : 'moved'
  }

  return async (resident, version, roomId, joinEvent, lists) => {
    const place = { id: roomId, version }
    const read = await vetter.vet(place, joinEvent)
    if (isRefusal(read)) return dropped(read.reason)
    const told = await orderTold(lists, vetter.expect, keysJudging(version, read.pdu))
    const judges = await vetter.vetAll(place, told.judges.filter(told.isState).map(told.at))
    if (!judges.some((one) => isCreateOf(version, one))) return dropped(OTHER_VERSION, read.eventId)
    const others = await vetter.vetAll(place, told.judges.filter((index) => !told.isState(index)).map(told.at))
    const refusal = refusalOf(version, read.pdu, [...judges, ...others])
    if (refusal !== undefined) return dropped(refusal, read.eventId)
    return lanes.run(roomId, async () => {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const room = await roomToJoin(roomId, version)
        if (!room) return dropped(OTHER_VERSION, read.eventId)
        const received = await join(resident, room, read, told)
        if (received !== 'moved') return received
      }
      return dropped('the room is too busy just now', read.eventId)
    })
  }
}

/** What was told, by numbers: those of the auth chain, and after them those of the state. */
interface Told {
  /** The shallowest first: what authorises an event lies before it. */
  readonly order: Uint32Array
  /** Numbers of what the room would judge a join by, and of what the auth chain has under the same keys. */
  readonly judges: readonly number[]
  isState(index: number): boolean
  readonly at: (index: number) => ReadJson
}

async function orderTold(
  { authChain, state }: ToldRoom,
  expect: Vetter['expect'],
  judging: ReadonlySet<string>,
): Promise<Told> {
  const first = authChain.length
  const at = (index: number): ReadJson => (index < first ? authChain.at(index) : state.at(index - first))!
  const depths = new Float64Array(first + state.length)
  const judges: number[] = []
  for (let from = 0; from < depths.length; from += LOOKED_AT_ONCE) {
    if (from > 0) await setImmediate()
    const some = Array.from({ length: Math.min(LOOKED_AT_ONCE, depths.length - from) }, (_, n) => at(from + n))
    expect(some)
    for (const [n, { value }] of some.entries()) {
      if (!isObject(value)) continue
      depths[from + n] = typeof value.depth === 'number' ? value.depth : 0
      if (judging.has(`${value.type}\0${value.state_key}`)) judges.push(from + n)
    }
  }
  const order = Uint32Array.from(depths.keys()).sort((a, b) => depths[a]! - depths[b]! || a - b)
  const isState = (index: number): boolean => index >= first
  const ofChain = judges.filter((index) => !isState(index)).slice(0, MAX_JUDGES)
  return { order, judges: [...ofChain, ...judges.filter(isState)], at, isState }
}

/** The state that a list of events makes, as they come to be known: none when two are for the same key, or one is of another room. */
class ToldStateMap {
  map: StateMap | undefined = EMPTY_STATE
  /** By the number of its event. */
  readonly memberships = new Map<number, Membership>()
  readonly #room: Room
  readonly #expected = new Set<EventId>()

  constructor(room: Room) {
    this.#room = room
  }

  expect(eventId: EventId): void {
    this.#expected.add(eventId)
  }

  readonly seen = (event: RoomEvent): void => {
    const { id, nid, roomNid, keyId, standing } = event
    if (!this.map || !this.#expected.delete(id)) return
    const isForeign = roomNid !== this.#room.nid
    if (!isForeign && (standing === 'rejected' || keyId === undefined)) return
    const before = isForeign ? nid : getState(this.map, keyId!)
    if (isForeign || (before !== 0 && before !== nid)) this.map = undefined
    else this.map = setState(this.map, keyId!, nid)
    if (event.type === 'm.room.member') this.memberships.set(nid, membershipOf(event))
  }
}

/** The state by which the rules judge a join. */
function keysJudging(version: RoomVersion, join: Pdu): ReadonlySet<string> {
  const keys: readonly StateKeyPair[] = [...authEventKeys(version, join), ['m.room.create', '']]
  return new Set(keys.map(([type, stateKey]) => `${type}\0${stateKey}`))
}

/**
 * Why a room does not let us in by what is told of it: found before anything of that is kept. Members may be left out of the state;
 * those that matter are cited.
 */
function refusalOf(version: RoomVersion, join: Pdu, judges: readonly ReadPdu[]): string | undefined {
  const find: StateLookup = (type, key) => judges.find(({ pdu }) => pdu.type === type && pdu.state_key === key)?.pdu
  const verdict = authorise(version, join, find)
  return verdict.allowed ? undefined : `the room does not let us in: ${reasonOf(verdict)}`
}

function isPlacedIn(room: Room, event: RoomEvent): boolean {
  return event.roomNid === room.nid && event.hasPlace
}

function isCreateOf(version: RoomVersion, { pdu }: ReadPdu): boolean {
  return pdu.type === 'm.room.create' && pdu.state_key === '' && createContentOf(pdu).roomVersionId === version.id
}
