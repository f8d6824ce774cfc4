import type { Logger } from 'pino'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { ServerPolicy } from '../../core/server-policy.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { Database } from '../../store/db/db.ts'
import {
  type DestinationRow,
  getDestinations,
  sentPosition,
  serversWithPartings,
} from '../../store/federation/federation-destinations.ts'
import { keptEdusFor, removeEdus, serversWithEdus } from '../../store/federation/federation-edus.ts'
import { insertForward } from '../../store/federation/federation-forwards.ts'
import type { Clock, Random } from '../clock.ts'
import { DOUBTFUL_EVERY_MS, GONE_EVERY_MS, MAX_DOUBTFUL_AT_ONCE, MAX_KEPT_EDUS_PER_TRANSACTION } from '../limits.ts'
import type { FederationMetrics, SendOutcome } from '../measures/work-metrics.ts'
import type { ErasedUsers } from '../rooms/read/erased-users.ts'
import { serversToTell } from '../rooms/room/destinations.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Lifetimes } from '../rooms/room/retention/lifetimes.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { StickyEvents } from '../rooms/write/sticky-events.ts'
import { createCatchUp } from './catch-up.ts'
import { Destination, type DestinationParts } from './destination.ts'
import { createEventSpreading, SpreadingQueue } from './event-spreading.ts'
import { createDestinationLog, type DestinationState, type DestinationStatus } from './sending/destination-log.ts'
import { isRefusal } from './sending/send-failures.ts'
import { Turns } from './sending/turns.ts'
import { SendingRecord } from './sending-record.ts'
import { createServerAccess } from './server-access.ts'

/** Sends events and EDUs to other servers (server-server API, "Transactions"). */
export interface Outgoing {
  /** Whether this server sends to another: not to itself, and not to blocked servers. */
  reaches(server: ServerName): boolean
  /** Queues events right after their commit, in order. */
  committed(room: Room, events: readonly RoomEvent[]): void
  /** Queues the events after one position, up to another: `committed` was not called for all of them. */
  missed(position: number, after: number): void
  /** Forwards an event of another server that only we got. Resolves once it is sure to be forwarded. */
  forward(room: Room, event: RoomEvent, from: ServerName): Promise<void>
  /** Sends events of ours to some servers that were not in their room when they were committed. */
  again(servers: Iterable<ServerName>, events: readonly RoomEvent[]): void
  /** Sends an EDU to the other servers of a room. It is not stored. */
  toRoom(room: Room, edu: JsonObject): void
  /** Sends an EDU to some servers. It is not stored. */
  edu(servers: Iterable<ServerName>, edu: JsonObject): void
  /** EDUs for some servers were stored in the database. They stay there until the servers have them. */
  kept(servers: Iterable<ServerName>): void
  /** A server has sent us a request. */
  heard(server: ServerName): void
  /** How sending to a server goes; undefined where nothing was to send lately. */
  statusOf(server: ServerName): DestinationStatus | undefined
  /** The servers to which something is being sent, or was lately. */
  servers(): Iterable<ServerName>
  /** The number of the newest event that is in the queues of all its servers. */
  handedOn(): number
  /** The number of the first event that a server does not have; undefined if it has all. */
  firstUnsent(server: ServerName): number | undefined
  /** Keeps the recorded position at `position` or before until the caller releases it: a restart continues from there. */
  holdBack(position: number): () => void
  /**
   * Continues where the previous process ended. Returns the position up to which that one had queued everything; undefined at the first
   * start.
   */
  start(position: number): Promise<number | undefined>
  /** What waits to be sent, counted now. */
  queues(): SendingQueues
  /** Begins to send. */
  open(): void
  close(): Promise<void>
}

/** The queues of all servers together. */
export interface SendingQueues {
  /** Servers by what their queue does. `idle` ones have been sent everything. */
  readonly destinations: Readonly<Record<DestinationState, number>>
  /** Events and EDUs in memory. */
  readonly pdus: number
  readonly edus: number
  /** The number of the first event that some server has not been sent. */
  readonly firstUnsent: number | undefined
}

/** Destinations without anything to send that are kept in memory. */
const MAX_IDLE_DESTINATIONS = 2_000

export interface OutgoingParts {
  readonly db: Database
  readonly serverName: ServerName
  readonly policy: ServerPolicy
  readonly peers: Pick<Peers, 'sendTransaction'>
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly erasedUsers: Pick<ErasedUsers, 'veil'>
  readonly lifetimes: Pick<Lifetimes, 'current'> | undefined
  readonly sticky: Pick<StickyEvents, 'isEmpty' | 'newest'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: FederationMetrics
}

export function createOutgoing(parts: OutgoingParts): Outgoing {
  const { db, serverName, policy, registry, events: cache, clock, log } = parts
  const queue = new SpreadingQueue()
  const record = new SendingRecord({ db, clock, log, position: queue.handedOn })
  const destinations = createDestinations(parts, record)
  const reaches = (server: ServerName) => server !== serverName && policy.refusalOf(server) === undefined
  const spreading = createEventSpreading({
    db,
    serverName,
    registry,
    events: cache,
    queue,
    record,
    log,
    reaches,
    destinationOf: destinations.of,
  })

  function sendEdu(servers: Iterable<ServerName>, edu: JsonObject): void {
    for (const server of servers) if (reaches(server)) destinations.of(server).edu(edu)
  }

  function kept(servers: Iterable<ServerName>, isFromBefore = false): void {
    for (const server of servers) if (reaches(server)) destinations.of(server).kept(isFromBefore)
  }

  /** Retries the servers that lagged behind, those with the fewest failures first. */
  async function takeUpDestinations(): Promise<void> {
    const rows = await getDestinations(db)
    record.begin(rows, await serversWithPartings(db))
    destinations.takeUp(rows)
    kept(await serversWithEdus(db), true)
  }

  return {
    reaches,
    committed(room, events) {
      const { isShared } = room
      const concerned = events.filter(
        (event) =>
          isOwn(event, serverName) && (isShared || isAboutAnother(event, serverName)) && !isArrival(event, room),
      )
      queue.seen = Math.max(queue.seen, ...events.map(({ nid }) => nid))
      record.soon()
      if (concerned.length > 0) spreading.add(concerned.map((event) => ({ room, event, except: undefined })))
    },
    missed(position, after) {
      queue.seen = Math.max(queue.seen, position)
      spreading.missed(position, after)
    },
    async forward(room, event, from) {
      const row = { event_nid: event.nid, from_server: from }
      if (!(await db.tx((tx) => insertForward(tx, row, clock.now())))) return
      spreading.add([{ room, event, except: from }])
    },
    again(servers, events) {
      for (const server of servers) {
        if (reaches(server)) for (const event of events) destinations.of(server).pdu(event)
      }
    },
    toRoom(room, edu) {
      if (!room.isShared) return
      serversToTell(db, room)
        .then((servers) => sendEdu(servers, edu))
        .catch((err) => log.debug({ err }, 'an EDU was not sent to the servers of a room'))
    },
    edu: sendEdu,
    kept: (servers) => kept(servers),
    heard: (server) => destinations.known(server)?.heard(),
    statusOf: (server) => destinations.known(server)?.status,
    servers: destinations.servers,
    handedOn: queue.handedOn,
    firstUnsent: (server) => destinations.known(server)?.row?.first_unsent,
    holdBack(at) {
      const release = queue.holdBack(at)
      return () => {
        release()
        record.soon()
      }
    },
    async start(current) {
      await takeUpDestinations()
      const sent = await sentPosition(db)
      queue.position = sent ?? current
      queue.seen = current
      if (sent === undefined) await record.saveNow()
      else await spreading.takeUp(sent)
      await spreading.takeUpForwards()
      return sent
    },
    queues: () => queuesOf(destinations.all()),
    open: () => destinations.open(reaches),
    async close() {
      await spreading.idle()
      await destinations.close()
      await record.close()
      await record.saveNow()
    },
  }
}

interface Destinations {
  of(server: ServerName): Destination
  known(server: ServerName): Destination | undefined
  servers(): Iterable<ServerName>
  all(): Iterable<Destination>
  /** The destinations that lagged behind when the previous process ended. */
  takeUp(rows: readonly DestinationRow[]): void
  /** Begins to send to all servers for which `reaches` is true. */
  open(reaches: (server: ServerName) => boolean): void
  close(): Promise<void>
}

function createDestinations(parts: OutgoingParts, record: SendingRecord): Destinations {
  const { db, serverName, peers, registry, events, erasedUsers, lifetimes, clock, random, log, metrics } = parts
  const destinations = new Map<ServerName, Destination>()
  let isOpen = false
  let mayBeKept = MAX_IDLE_DESTINATIONS

  const access = createServerAccess({ db, registry, events, erasedUsers, lifetimes })
  const destinationParts: DestinationParts = {
    serverName,
    peers: { sendTransaction: timed(peers.sendTransaction, metrics) },
    clock,
    random,
    log: createDestinationLog({ log, clock }),
    missed: createCatchUp({ db, serverName, registry, events, sticky: parts.sticky, access }),
    changed: record.changed,
    isOpen: () => isOpen,
    keptEdus: (server) => keptEdusFor(db, server, MAX_KEPT_EDUS_PER_TRANSACTION),
    taken: (nids) => db.tx((tx) => removeEdus(tx, nids)),
    turns: {
      doubtful: new Turns(MAX_DOUBTFUL_AT_ONCE, DOUBTFUL_EVERY_MS),
      gone: new Turns(MAX_DOUBTFUL_AT_ONCE, GONE_EVERY_MS),
    },
  }

  function forgetIdle(): void {
    for (const [server, destination] of destinations) {
      if (destination.isIdle && !record.has(server)) destinations.delete(server)
    }
    // Not checked for every new destination, if none of the others is idle.
    mayBeKept = destinations.size + MAX_IDLE_DESTINATIONS
  }

  return {
    of(server) {
      const known = destinations.get(server)
      if (known) return known
      if (destinations.size >= mayBeKept) forgetIdle()
      const made = new Destination(server, destinationParts)
      destinations.set(server, made)
      return made
    },
    known: (server) => destinations.get(server),
    servers: () => destinations.keys(),
    all: () => destinations.values(),
    takeUp(rows) {
      mayBeKept += rows.length
      for (const row of rows) destinations.set(row.server, new Destination(row.server, destinationParts, row))
    },
    open(reaches) {
      isOpen = true
      for (const [server, destination] of destinations) {
        // A server that is blocked for a while keeps its place.
        if (!destination.isIdle && reaches(server)) destination.wake()
      }
    },
    async close() {
      await Promise.all([...destinations.values()].map((destination) => destination.close()))
    },
  }
}

/** Sends a transaction, and has the time counted that it took. */
function timed(send: Peers['sendTransaction'], { sent }: FederationMetrics): Peers['sendTransaction'] {
  return async (...transaction) => {
    const begun = performance.now()
    const end = (outcome: SendOutcome): void => sent(outcome, (performance.now() - begun) / 1000)
    try {
      const answer = await send(...transaction)
      end('taken')
      return answer
    } catch (error) {
      end(isRefusal(error) ? 'refused' : 'failed')
      throw error
    }
  }
}

function queuesOf(all: Iterable<Destination>): SendingQueues {
  const destinations: Record<DestinationState, number> = { idle: 0, sending: 0, waiting: 0, failing: 0, gone: 0 }
  let pdus = 0
  let edus = 0
  let first = Number.POSITIVE_INFINITY
  for (const one of all) {
    destinations[one.state]++
    pdus += one.waiting.pdus
    edus += one.waiting.edus
    first = Math.min(first, one.firstUnsent ?? first)
  }
  return { destinations, pdus, edus, firstUnsent: Number.isFinite(first) ? first : undefined }
}

function isOwn({ standing, isInTimeline, isHistory, sender }: RoomEvent, serverName: ServerName): boolean {
  return standing === undefined && isInTimeline && !isHistory && serverOf(sender) === serverName
}

/**
 * The first local user has joined. The server that handled the join has the event and sends it to the others (server-server API, "Joining
 * Rooms").
 */
function isArrival({ type, senderNid, streamPos }: RoomEvent, { localMembers }: Room): boolean {
  return type === 'm.room.member' && localMembers.size === 1 && localMembers.get(senderNid)?.since === streamPos
}

function isAboutAnother({ type, pdu }: RoomEvent, serverName: ServerName): boolean {
  return type === 'm.room.member' && serverOf(pdu.state_key as UserId) !== serverName
}
