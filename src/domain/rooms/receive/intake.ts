import { redactsOf } from '../../../core/event/content.ts'
import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId, ServerName } from '../../../core/ids.ts'
import type { Integer } from '../../../core/large-integers.ts'
import { EMPTY_STATE, getState, type StateMap, setState } from '../../../core/state/trie.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getEarlyRedactions, getMissing } from '../../../store/events/events.ts'
import { lastArrival } from '../../../store/events/gaps.ts'
import {
  MAX_ASKING_MS,
  MAX_CLAIMED_EVENTS,
  MAX_CLAIMED_STATES,
  MAX_FETCHED_AUTH_EVENTS,
  MAX_FETCHED_EVENTS,
  MAX_FETCHES,
  MAX_MISSING_EVENTS,
} from '../../limits.ts'
import { prevIdsOf } from '../room/event-references.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { Surroundings } from '../room/surroundings.ts'
import { topological } from '../room/topological.ts'
import type { FederationQueries, StateIds } from './federation-queries.ts'
import { type Budget, isOver } from './outlier-download.ts'
import type { Outliers } from './outliers.ts'
import type { PduChecks } from './pdu-checks.ts'

export interface IntakeParts {
  readonly serverName: ServerName
  readonly db: Reader
  readonly outliers: Outliers
  readonly queries: FederationQueries
  readonly pduChecks: PduChecks
}

/** How many events back a branch of soft-failed and rejected events is followed, to the extremities behind it. */
const MAX_PASSED_OVER = 1_000

/** Events of one room that a server sent. Fetches the events that are missing around them, and loads those that we have. */
export class Intake {
  readonly room: Room
  readonly origin: ServerName
  readonly #parts: IntakeParts
  /** Missing events that accepted events refer to. */
  readonly #awaited = new Set<EventId>()
  readonly #redactions = new Map<EventId, number[]>()
  /** How many auth events may still be fetched for these events. `#claiming` is the same for claimed states and their auth chains. */
  readonly citing: Budget
  readonly #claiming: Budget
  #claimedStates = 0
  /** The events of this intake that we already had, at the time when `outliersTaken` had the value of `#knownAsOf`. */
  readonly #known = new Map<EventId, RoomEvent>()
  #knownAsOf = 0

  constructor(parts: IntakeParts, room: Room, origin: ServerName) {
    this.#parts = parts
    this.room = room
    this.origin = origin
    const until = performance.now() + MAX_ASKING_MS
    this.citing = { left: MAX_FETCHED_AUTH_EVENTS, until }
    this.#claiming = { left: MAX_CLAIMED_EVENTS, until }
  }

  /** Sorts the events so that each comes after its previous events, and tells whether any previous event is missing. Sends no query. */
  async order(reads: readonly ReadPdu[]): Promise<{ order: readonly ReadPdu[]; lacks: boolean }> {
    const all = new Map(reads.map((read) => [read.eventId, read]))
    await this.lookUp(reads)
    return { order: topological(all, ({ pdu }) => prevIdsOf(pdu)).order, lacks: this.#withMissing(all).length > 0 }
  }

  /** Adds the missing events before these, as far as the origin has them. Stores nothing. */
  async complete(reads: readonly ReadPdu[]): Promise<readonly ReadPdu[]> {
    const all = new Map(reads.map((read) => [read.eventId, read]))
    await this.lookUp(reads)
    const minDepth = await this.#arrivalDepth()
    for (let fetches = 0; fetches < MAX_FETCHES && all.size - reads.length < MAX_FETCHED_EVENTS; fetches++) {
      const latest = this.#withMissing(all)
      if (latest.length === 0 || isOver(this.citing)) break
      const fetched = (await this.#fetch(latest, minDepth)).filter(({ eventId }) => !all.has(eventId))
      if (fetched.length === 0) break
      for (const read of fetched) all.set(read.eventId, read)
      await this.lookUp(fetched)
    }
    return [...all.values()]
  }

  /** An event of this intake, if we already had it; saves a query for each. */
  async known(eventId: EventId): Promise<RoomEvent | undefined> {
    const { room } = this
    if (room.outliersTaken === this.#knownAsOf) return room.unsettled(eventId) ?? this.#known.get(eventId)
    return (await this.#parts.outliers.find(room, [eventId])).get(eventId)
  }

  /** Loads what we have of events and of their previous events, in one round trip. */
  async lookUp(reads: readonly ReadPdu[]): Promise<void> {
    const { db, outliers } = this.#parts
    const { room } = this
    const ids = reads.map(({ eventId }) => eventId)
    this.#knownAsOf = room.outliersTaken
    const [known, awaited, redactions] = await Promise.all([
      outliers.find(room, [...new Set([...ids, ...reads.flatMap(({ pdu }) => prevIdsOf(pdu))])]),
      getMissing(db, room.nid, ids),
      getEarlyRedactions(db, room.nid, ids),
    ])
    for (const [id, event] of known) this.#known.set(id, event)
    for (const id of awaited) this.#awaited.add(id as EventId)
    for (const { target_id, redaction_nid } of redactions) this.#noteRedaction(target_id as EventId, redaction_nid)
  }

  /** The events whose previous events we neither have nor got. */
  #withMissing(all: ReadonlyMap<EventId, ReadPdu>): EventId[] {
    const isPlaced = (id: EventId): boolean => this.#known.get(id)?.hasPlace === true
    const lacks = (id: EventId): boolean => !all.has(id) && !isPlaced(id)
    return [...all].flatMap(([id, { pdu }]) => (!isPlaced(id) && prevIdsOf(pdu).some(lacks) ? [id] : []))
  }

  /**
   * The depth at which we came into the room. A branch from before then leads back through the whole history, which is not news: it stays a
   * gap. A join through another server counts only if no other user of ours was in the room.
   */
  async #arrivalDepth(): Promise<Integer> {
    let first = Number.MAX_SAFE_INTEGER
    for (const { since } of this.room.localMembers.values()) first = Math.min(first, since)
    const nid = await lastArrival(this.#parts.db, this.room.nid, this.#parts.serverName, first)
    return nid === undefined ? 0 : ((await this.room.events([nid])).get(nid)?.pdu.depth ?? 0)
  }

  async #fetch(latest: readonly EventId[], minDepth: Integer): Promise<ReadPdu[]> {
    const { queries, pduChecks } = this.#parts
    const between = {
      earliest: this.room.pending.extremities.map(({ id }) => id),
      latest: latest.slice(-MAX_MISSING_EVENTS),
      limit: MAX_MISSING_EVENTS,
      minDepth,
    }
    const answer = await queries.missingEvents(this.origin, this.room.id, between)
    const reads = await pduChecks.checkAll(this.room, answer.slice(0, MAX_MISSING_EVENTS))
    return reads.filter(({ pdu }) => pdu.depth >= minDepth)
  }

  #noteRedaction(target: EventId, nid: number): void {
    const known = this.#redactions.get(target)
    if (!known) this.#redactions.set(target, [nid])
    else if (!known.includes(nid)) known.push(nid)
  }

  /** An event was placed: later events of this intake may be the ones it refers to. */
  placed(event: RoomEvent, around: Surroundings): void {
    if (event.standing !== undefined && !around.isReferenced) return
    const prevs = new Set(around.prevs.map(({ id }) => id))
    for (const id of prevIdsOf(event.pdu)) if (!prevs.has(id)) this.#awaited.add(id)
    for (const id of around.missingBehind) this.#awaited.add(id)
    const target = this.#targetOf(event.type, event.pdu)
    if (target !== undefined && !around.target?.hasPlace) this.#noteRedaction(target, event.nid)
  }

  #targetOf(type: string, pdu: ReadPdu['pdu']): EventId | undefined {
    return type === 'm.room.redaction' ? redactsOf(this.room.version, pdu) : undefined
  }

  /**
   * What is known around an event, or the reason why something could not be fetched. @param given the state before it, if it was already
   * fetched
   */
  async around(
    { eventId, pdu }: ReadPdu,
    outlier: RoomEvent | undefined,
    given?: StateMap,
  ): Promise<Omit<Surroundings, 'cited' | 'isOwnJoin' | 'isOffered'> | string> {
    const prevIds = prevIdsOf(pdu)
    const targetId = this.#targetOf(pdu.type, pdu)
    const known = await this.#parts.outliers.find(this.room, targetId ? [...prevIds, targetId] : prevIds)
    const prevs = prevIds.flatMap((id) => known.get(id) ?? [])
    if (prevs.some(({ roomNid }) => roomNid !== this.room.nid)) return 'it builds on an event of another room'
    const placed = prevs.filter(({ hasPlace }) => hasPlace)
    const claimed = placed.length < prevIds.length ? (given ?? (await this.#claimedState(eventId))) : undefined
    if (claimed === undefined && placed.length < prevIds.length) return 'what it builds on could not be had'
    const target = targetId && known.get(targetId)
    return {
      outlier,
      prevs: placed,
      ...(await this.#passedOver(placed)),
      claimed,
      isReferenced: this.#awaited.has(eventId),
      redactions: [...(await this.room.events(this.#redactions.get(eventId) ?? [])).values()].sort(
        (a, b) => a.nid - b.nid,
      ),
      target: target?.roomNid === this.room.nid ? target : undefined,
    }
  }

  /** The state before an event as the origin claims it, after every event in it is checked. */
  async #claimedState(eventId: EventId): Promise<StateMap | undefined> {
    if (++this.#claimedStates > MAX_CLAIMED_STATES || isOver(this.#claiming)) return undefined
    const ids = await this.#parts.queries.stateIds(this.origin, this.room.id, eventId)
    const all = ids ? [...ids.authChain, ...ids.state] : []
    if (!ids || all.length > this.#claiming.left) return undefined
    const { outliers } = this.#parts
    const isHad = await outliers.fetch(this.room, this.origin, all, this.#claiming)
    const state = isHad ? stateOf(this.room, ids, await outliers.find(this.room, ids.state)) : undefined
    // Looking up the ids that a server names is work too, so a claim that leads nowhere uses up the budget.
    if (state === undefined) this.#claiming.left -= all.length
    return state
  }

  /** The events behind previous events that are outside the timeline. An accepted event that builds on them covers these. */
  async #passedOver(prevs: readonly RoomEvent[]): Promise<Pick<Surroundings, 'passedOver' | 'missingBehind'>> {
    const found = new Set<EventId>()
    const missing: EventId[] = []
    let excluded = prevs.filter((event) => !event.isInTimeline)
    while (excluded.length > 0 && found.size < MAX_PASSED_OVER) {
      const behind = excluded.flatMap(({ pdu }) => prevIdsOf(pdu)).filter((id) => !found.has(id))
      for (const id of behind) found.add(id)
      const events = await this.#parts.outliers.find(this.room, [...new Set(behind)])
      missing.push(...new Set(behind.filter((id) => events.get(id)?.hasPlace !== true)))
      excluded = [...events.values()].filter((event) => !event.isInTimeline && event.standing !== 'outlier')
    }
    return { passedOver: found, missingBehind: missing }
  }
}

/** The state that a list of events forms. Undefined when one is missing, or two have the same key. */
export function stateOf(
  room: Room,
  ids: Pick<StateIds, 'state'>,
  events: ReadonlyMap<EventId, RoomEvent>,
): StateMap | undefined {
  let state = EMPTY_STATE
  for (const id of new Set(ids.state)) {
    const event = events.get(id)
    if (!event || event.roomNid !== room.nid) return undefined
    if (event.standing === 'rejected' || event.keyId === undefined) continue
    if (getState(state, event.keyId) !== 0) return undefined
    state = setState(state, event.keyId, event.nid)
  }
  return state
}
