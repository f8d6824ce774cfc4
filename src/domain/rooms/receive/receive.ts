import type { Logger } from 'pino'
import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId, RoomId, ServerName } from '../../../core/ids.ts'
import type { ReadJson } from '../../../core/json.ts'
import { createKeyedQueue, type KeyedQueue } from '../../../core/keyed-queue.ts'
import type { Database } from '../../../store/db/db.ts'
import type { EventCache } from '../room/event-cache.ts'
import { judgingIds } from '../room/event-references.ts'
import { membersAreMissing } from '../room/partial-state.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { Surroundings } from '../room/surroundings.ts'
import type { FederationQueries } from './federation-queries.ts'
import { Intake } from './intake.ts'
import type { Outliers } from './outliers.ts'
import { isRefusal, type PduChecks } from './pdu-checks.ts'
import type { Placed, Placing } from './placing.ts'
import { dropped, type Received, receivedAs, settled } from './received.ts'

/** The one path by which events of other servers come in (server-server API, "Checks performed on receipt of a PDU"). */
export interface Receiver {
  /**
   * Takes in events of one room that a server sent, in any order. Resolves when they are durable, with an outcome for each, in the
   * order given. Events of one room are taken in one call after another.
   *
   * @throws ProtocolError 503 while most of the room's members are not known: nobody could be judged
   */
  receive(origin: ServerName, roomId: RoomId, pdus: readonly ReadJson[], keep?: Keep): Promise<readonly Received[]>
}

export interface ReceiverParts {
  readonly serverName: ServerName
  readonly db: Database
  readonly events: EventCache
  readonly registry: RoomRegistry
  readonly questions: FederationQueries
  readonly pduChecks: PduChecks
  readonly outliers: Outliers
  readonly placing: Placing
  /** One for each room: what is in one writes events that came from elsewhere. */
  readonly roomQueue: KeyedQueue<RoomId>
  readonly log: Pick<Logger, 'error'>
}

/** How often events are taken in anew because others wrote to their room. */
const MAX_ATTEMPTS = 8

/** Which of the events given are stored: those that are rejected too, so that what builds on them can be judged, or only those accepted. */
export type Keep = 'all' | 'accepted'

/** Why events of a room are dropped that we know nothing of. */
export const NOT_HERE = 'this server does not take part in the room'

type Results = Map<EventId, Received>

export function createReceiver(parts: ReceiverParts): Receiver {
  const { registry, pduChecks, outliers, placing, roomQueue } = parts
  /** A server is asked for what is missing in one room by one batch of its own after another. */
  const asking = createKeyedQueue<string>()

  /** The room, if we take part in it or did. */
  async function knownRoom(roomId: RoomId): Promise<Room | undefined> {
    const room = await registry.get(roomId)
    return room && room.pending.extremities.length > 0 ? room : undefined
  }

  async function takeAll(
    origin: ServerName,
    roomId: RoomId,
    reads: readonly ReadPdu[],
    offered: ReadonlySet<EventId>,
    isCompleted: boolean,
  ): Promise<Results | 'lacking'> {
    const results: Results = new Map()
    let oneByOne = false
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const left = reads.filter(({ eventId }) => !results.has(eventId))
      const room = left.length === 0 ? undefined : await knownRoom(roomId)
      if (!room) break
      try {
        const intake = new Intake(parts, room, origin)
        const { order, lacks } = await intake.order(left)
        if (lacks && attempt === 0 && !isCompleted) return 'lacking'
        await takeOnce(intake, order, results, oneByOne, offered)
        noteCircles(left, order, results)
      } catch (error) {
        if (oneByOne || isOutage(error)) throw error
        // Each is then written alone, so that one that cannot be spoils no other.
        oneByOne = true
      }
    }
    return results
  }

  /**
   * Takes events in, with those that are missing before them. While these are asked for the room is open to others: their server may take
   * its time.
   */
  async function takeWithMissing(
    origin: ServerName,
    roomId: RoomId,
    reads: readonly ReadPdu[],
    offered: ReadonlySet<EventId>,
  ): Promise<Results> {
    const take = (all: readonly ReadPdu[], isCompleted: boolean) =>
      roomQueue.run(roomId, () => takeAll(origin, roomId, all, offered, isCompleted))
    const results = await take(reads, false)
    if (results !== 'lacking') return results
    return asking.run(`${origin} ${roomId}`, async () => {
      const room = await knownRoom(roomId)
      const taken = await take(room ? await new Intake(parts, room, origin).complete(reads) : reads, true)
      return taken === 'lacking' ? new Map() : taken
    })
  }

  /** One pass over events, on a room as it is in memory. What finds the room moved on stays without a result. */
  async function takeOnce(
    intake: Intake,
    order: readonly ReadPdu[],
    results: Results,
    oneByOne: boolean,
    offered: ReadonlySet<EventId>,
  ): Promise<void> {
    const { room } = intake
    const placed: Placed[] = []
    for (const read of order) {
      if (!room.alive) break
      if (results.get(read.eventId)?.kind === 'dropped') continue
      const one = await tryToTake(intake, read, offered.has(read.eventId))
      if (one === 'moved') break
      if ('kind' in one) results.set(read.eventId, one)
      else placed.push(one)
      if (oneByOne) await record(placed.splice(0), results, oneByOne)
    }
    await record(placed, results, oneByOne)
  }

  async function tryToTake(intake: Intake, read: ReadPdu, isOffered: boolean): Promise<Received | Placed | 'moved'> {
    const { room } = intake
    try {
      return await take(intake, read, isOffered)
    } catch (error) {
      // On a room that was given up meanwhile nothing needs to fit together.
      const isItsFault = room.alive && !isOutage(error)
      // What was begun is half in memory: the next to come reads the room again.
      registry.drop(room)
      if (isOutage(error)) throw error
      return isItsFault ? failed(read.eventId, error) : 'moved'
    }
  }

  /** Waits until what was placed is written, or refused. @param isAlone what cannot be written is a single event */
  async function record(placed: readonly Placed[], results: Results, isAlone: boolean): Promise<void> {
    try {
      for (const { event, outcome } of await settled(placed)) {
        if (outcome === 'committed') results.set(event.id, receivedAs(event.id, event.standing, event.reason))
      }
    } catch (error) {
      const [only] = placed
      if (!isAlone || only === undefined || isOutage(error)) throw error
      results.set(only.event.id, failed(only.event.id, error))
    }
  }

  async function take(intake: Intake, read: ReadPdu, isOffered: boolean): Promise<Received | Placed | 'moved'> {
    const { room, origin } = intake
    const { eventId, pdu } = read
    const known = await intake.known(eventId)
    if (known && known.roomNid !== room.nid) return dropped('its id is that of an event of another room', eventId)
    if (known?.hasPlace) return receivedAs(eventId, 'known')
    if (pdu.type === 'm.room.create') {
      // Where a room was joined it is an outlier for good: placed anew it would be a branch without any other state.
      const isOurs = room.stateNid(room.pending.state, pdu.type, '') === known?.nid
      return isOurs ? receivedAs(eventId, 'known') : dropped('the room has another create event', eventId)
    }
    const around = await intake.around(read, known)
    if (typeof around === 'string') return dropped(around, eventId)
    const cited = await outliers.cite(room, origin, [read], intake.citing)
    if (!judgingIds(room, read).every((id) => cited.has(id)))
      return dropped('its auth events could not be had', eventId)
    const whole: Surroundings = { ...around, cited, isOwnJoin: false, isOffered }
    const placed = await placing.place(room, read, whole)
    if (placed === 'moved') return placed
    if ('standing' in placed) return receivedAs(eventId, placed.standing, placed.reason)
    intake.placed(placed.event, whole)
    return placed
  }

  function failed(eventId: EventId, error: unknown): Received {
    parts.log.error({ err: error, eventId }, 'an event of another server could not be taken in')
    return dropped('this server failed to take it in', eventId)
  }

  return {
    async receive(origin, roomId, pdus, keep = 'all') {
      const room = await knownRoom(roomId)
      if (!room) return pdus.map(() => dropped(NOT_HERE))
      if (room.partialState?.lacksMembers) throw membersAreMissing()
      const reads = await pduChecks.checkEach(room, pdus)
      const passed = new Map(reads.flatMap((read) => (isRefusal(read) ? [] : [[read.eventId, read] as const])))
      const offered = new Set(keep === 'accepted' ? passed.keys() : [])
      const results = await takeWithMissing(origin, roomId, [...passed.values()], offered)
      return reads.map((read) => {
        if (isRefusal(read)) return dropped(read.reason)
        return results.get(read.eventId) ?? dropped('the room is too busy just now', read.eventId)
      })
    },
  }
}

function isOutage(error: unknown): boolean {
  return (error as { status?: number }).status === 503
}

/** A circle of events, in room versions whose ids are not hashes. */
function noteCircles(reads: readonly ReadPdu[], order: readonly ReadPdu[], results: Results): void {
  if (order.length === reads.length) return
  const ordered = new Set(order.map(({ eventId }) => eventId))
  for (const { eventId } of reads) {
    if (!ordered.has(eventId)) results.set(eventId, dropped('it builds on itself', eventId))
  }
}
