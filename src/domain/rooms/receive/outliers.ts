import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId, ServerName } from '../../../core/ids.ts'
import { clampToSafe } from '../../../core/large-integers.ts'
import type { Users } from '../../users.ts'
import type { EventCache } from '../room/event-cache.ts'
import { authIdsOf, authoriseByCited, impliedIds, judgingIds, reasonOf } from '../room/event-references.ts'
import type { Room } from '../room/room.ts'
import { outlierRow, RoomEvent } from '../room/room-event.ts'
import { topological } from '../room/topological.ts'
import { keyWrites, NO_GRAPH, type Persister } from '../write/persister.ts'
import type { FederationQueries } from './federation-queries.ts'
import type { PduChecks } from './pdu-checks.ts'

/** How many events may still be asked for, for the sake of one batch from another server. */
export interface Budget {
  left: number
  /** When it is over whatever is left, by the clock of `performance.now()`. */
  readonly until?: number
}

export function isOver({ left, until = Number.POSITIVE_INFINITY }: Budget): boolean {
  return left <= 0 || performance.now() > until
}

/** Events that are known for their part in auth chains and claimed states, whatever their place in the room. */
export interface Outliers {
  /** Events by id, also those on their way to the database, and those of other rooms. */
  find(room: Room, eventIds: readonly EventId[]): Promise<Map<EventId, RoomEvent>>
  /**
   * Brings to hand what events need to be judged: what they cite, and what that cites. Asks `of` for what is missing,
   * stores it, and gives all that can be had; what is left out cannot.
   */
  cite(room: Room, of: ServerName, events: readonly ReadPdu[], budget: Budget): Promise<Map<EventId, RoomEvent>>
  /** Downloads those of the events that are missing and all that they cite, without storing them. */
  gather(room: Room, of: ServerName, eventIds: readonly EventId[], budget: Budget): Promise<readonly ReadPdu[]>
  /**
   * Judges events by what they cite and stores them; gives those back whose cited events are neither known nor among them.
   *
   * @param seen told of each that is stored, or was before
   */
  take(room: Room, events: readonly ReadPdu[], seen?: (event: RoomEvent) => void): Promise<ReadPdu[]>
  /** Fetches those of the events that are missing and all that they cite, and stores them. False when it gave up. */
  fetch(room: Room, of: ServerName, eventIds: readonly EventId[], budget: Budget): Promise<boolean>
}

export interface OutlierParts {
  readonly events: EventCache
  readonly users: Users
  readonly persister: Persister
  readonly questions: FederationQueries
  readonly pduChecks: PduChecks
}

/** Events asked for in one request. */
const EVENTS_PER_QUESTION = 100
const EVENTS_PER_COMMIT = 256
/** Ids looked up in one query: others read in between. */
const IDS_PER_LOOKUP = 1_000

export function createOutliers({ events, users, persister, questions, pduChecks }: OutlierParts): Outliers {
  async function find(room: Room, eventIds: readonly EventId[]): Promise<Map<EventId, RoomEvent>> {
    const found = new Map<EventId, RoomEvent>()
    const missing: EventId[] = []
    for (const id of eventIds) {
      const event = room.unsettled(id)
      if (event) found.set(id, event)
      else missing.push(id)
    }
    for (let at = 0; at < missing.length; at += IDS_PER_LOOKUP) {
      const loaded = await events.loadByIds(missing.slice(at, at + IDS_PER_LOOKUP))
      for (const event of loaded.values()) found.set(event.id, event)
    }
    return found
  }

  /**
   * Downloads what is missing of some events and of what they cite, into `fetched`. Gives up, with false, when a question is answered
   * by nothing of what it was for, or the budget is spent: who names many events and has none costs one look-up and one question.
   */
  async function download(
    room: Room,
    of: ServerName,
    eventIds: readonly EventId[],
    budget: Budget,
    fetched: Map<EventId, ReadPdu>,
  ): Promise<boolean> {
    const asked = new Set<EventId>()
    for (let front = eventIds; front.length > 0; ) {
      const cited = new Set<EventId>()
      const open: EventId[] = []
      for (let at = 0; at < front.length; at += IDS_PER_LOOKUP) {
        const part = front.slice(at, at + IDS_PER_LOOKUP)
        const known = await find(room, part)
        for (const id of part) if (!known.has(id)) open.push(id)
        const isLast = at + IDS_PER_LOOKUP >= front.length
        while (open.length >= EVENTS_PER_QUESTION || (isLast && open.length > 0)) {
          const wanted = open.splice(0, EVENTS_PER_QUESTION)
          for (const id of wanted) asked.add(id)
          const given = (await ask(room, of, wanted, budget)).filter(({ eventId }) => asked.has(eventId))
          if (given.length === 0) return false
          for (const read of given) {
            fetched.set(read.eventId, read)
            for (const id of judgingIds(room, read)) cited.add(id)
          }
        }
      }
      front = [...cited].filter((id) => !asked.has(id))
    }
    return true
  }

  async function ask(room: Room, of: ServerName, eventIds: readonly EventId[], budget: Budget): Promise<ReadPdu[]> {
    if (eventIds.length > budget.left || isOver(budget)) return []
    budget.left -= eventIds.length
    const answer = await questions.events(of, room.id, eventIds)
    return pduChecks.checkAll(room, answer.slice(0, eventIds.length))
  }

  async function fetch(room: Room, of: ServerName, eventIds: readonly EventId[], budget: Budget): Promise<boolean> {
    const fetched = new Map<EventId, ReadPdu>()
    const isWhole = await download(room, of, eventIds, budget, fetched)
    if (fetched.size > 0) await take(room, [...fetched.values()])
    return isWhole
  }

  async function take(
    room: Room,
    reads: readonly ReadPdu[],
    seen: (event: RoomEvent) => void = () => {},
  ): Promise<ReadPdu[]> {
    const needs = new Map(reads.map((read) => [read, judgingIds(room, read)]))
    const { order } = topological(
      new Map(reads.map((read) => [read.eventId as string, read])),
      (read) => needs.get(read)!,
    )
    const nids = await users.intern([...new Set(order.map(({ pdu }) => pdu.sender))])
    const left: ReadPdu[] = []
    let stored: Promise<void> | undefined
    for (let at = 0; at < order.length && room.alive; at += EVENTS_PER_COMMIT) {
      const part = order.slice(at, at + EVENTS_PER_COMMIT)
      const ids = new Set(part.flatMap((read) => [read.eventId, ...needs.get(read)!]))
      const known = await find(room, [...ids])
      // Of a large state no more is held in the queue than one commit beside the one that is written.
      await stored
      stored = store(room, part, known, needs, (sender) => nids.get(sender)!)
      for (const read of part) {
        const event = known.get(read.eventId)
        if (event) seen(event)
        else left.push(read)
      }
    }
    return left
  }

  /** Nothing waits between numbering events and queueing them. */
  function store(
    room: Room,
    reads: readonly ReadPdu[],
    known: Map<EventId, RoomEvent>,
    needs: ReadonlyMap<ReadPdu, readonly EventId[]>,
    nidOf: (sender: ReadPdu['pdu']['sender']) => number,
  ): Promise<void> | undefined {
    const made: RoomEvent[] = []
    for (const read of reads) {
      if (known.has(read.eventId) || !needs.get(read)!.every((id) => known.has(id))) continue
      const event = judged(room, read, known, nidOf(read.pdu.sender))
      known.set(event.id, event)
      made.push(event)
    }
    if (made.length === 0 || !room.alive) return undefined
    const before = room.pending
    const after = { ...before, version: before.version + 1 }
    const nothing = { changes: [], members: [], highlights: [], redactions: [], txn: undefined }
    const unit = { ...NO_GRAPH, ...nothing, room, before, after, events: made, keys: keyWrites(room) }
    room.enqueued(unit)
    room.outliersTaken += made.length
    // What builds on these is queued behind them, and fails with them.
    return persister.enqueue(unit).then(
      () => undefined,
      () => undefined,
    )
  }

  function judged(
    room: Room,
    { pdu, eventId, json }: ReadPdu,
    known: ReadonlyMap<EventId, RoomEvent>,
    senderNid: number,
  ): RoomEvent {
    const verdict = authoriseByCited(room, pdu, known)
    const keyId = verdict.allowed && pdu.state_key !== undefined ? room.keys.intern(pdu.type, pdu.state_key) : undefined
    const row = outlierRow({
      event_nid: persister.takeNid(),
      room_nid: room.nid,
      sender_nid: senderNid,
      origin_server_ts: clampToSafe(pdu.origin_server_ts),
      key_id: keyId ?? null,
      event_id: eventId,
      type: pdu.type,
      standing: verdict.allowed ? 'outlier' : 'rejected',
      reason: verdict.allowed ? null : `by its auth events: ${reasonOf(verdict)}`,
      auth_nids: keyId === undefined ? null : authIdsOf(pdu).map((id) => known.get(id)!.nid),
      json,
    })
    return new RoomEvent(row, pdu)
  }

  return {
    find,
    fetch,
    take,
    async gather(room, of, eventIds, budget) {
      const fetched = new Map<EventId, ReadPdu>()
      await download(room, of, eventIds, budget, fetched)
      return [...fetched.values()]
    },
    async cite(room, of, reads, budget) {
      const ids = [...new Set([...reads.flatMap(({ pdu }) => authIdsOf(pdu)), ...impliedIds(room)])]
      const known = await find(room, ids)
      if (known.size === ids.length) return known
      const among = new Set(reads.map(({ eventId }) => eventId))
      const missing = ids.filter((id) => !known.has(id) && !among.has(id))
      if (missing.length === 0) return known
      await fetch(room, of, missing, budget)
      return find(room, ids)
    },
  }
}
