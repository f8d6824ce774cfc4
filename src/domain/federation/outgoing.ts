import type { Logger } from 'pino'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { ServerPolicy } from '../../core/server-policy.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { Database } from '../../store/db/db.ts'
import { getOwnEvents } from '../../store/federation/federation-catch-up.ts'
import { getDestinations, sentPosition, serversWithPartings } from '../../store/federation/federation-destinations.ts'
import { keptEdusFor, removeEdus, serversWithEdus } from '../../store/federation/federation-edus.ts'
import { getForwardsDue, insertForward } from '../../store/federation/federation-forwards.ts'
import type { Clock, Random } from '../clock.ts'
import {
  DOUBTFUL_EVERY_MS,
  GONE_EVERY_MS,
  MAX_DOUBTFUL_AT_ONCE,
  MAX_KEPT_EDUS_PER_TRANSACTION,
  MAX_PDUS_IN_MEMORY,
} from '../limits.ts'
import type { ErasedUsers } from '../rooms/read/erased-users.ts'
import { serversToTell } from '../rooms/room/destinations.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { createCatchUp } from './catch-up.ts'
import { Destination } from './destination.ts'
import { createDestinationLog } from './destination-log.ts'
import { SendingRecord } from './sending-record.ts'
import { createServerAccess } from './server-access.ts'
import { Turns } from './turns.ts'

/** What this server sends to others by itself (server-server API, "Transactions"). */
export interface Outgoing {
  /** Whether anything is ever sent to a server: not to this one, and not to those that are shut out. */
  reaches(server: ServerName): boolean
  /** Takes note of events right after their commit, in order. */
  committed(room: Room, events: readonly RoomEvent[]): void
  /** Passes on an event of another server that only we were given. Resolves once that is certain to happen. */
  forward(room: Room, event: RoomEvent, from: ServerName): Promise<void>
  /** Tells the other servers of a room something that need not outlive the process. */
  toRoom(room: Room, edu: JsonObject): void
  /** The same for some servers. */
  edu(servers: Iterable<ServerName>, edu: JsonObject): void
  /** EDUs for some servers were committed to the database, to stay there until they are taken. */
  kept(servers: Iterable<ServerName>): void
  /** A server has spoken to us. */
  heard(server: ServerName): void
  /** What is noted as handed on does not go beyond a position until the caller says that it may: a start begins there again. */
  holdBack(position: number): () => void
  /** Takes up what was left when the process ended. Gives the position up to which it had handed on all; undefined at the first start. */
  start(position: number): Promise<number | undefined>
  /** Begins to send. */
  open(): void
  close(): Promise<void>
}

interface Entry {
  readonly room: Room
  readonly event: RoomEvent
  readonly except: ServerName | undefined
}

const SPREAD_AGAIN_MS = 1_000
/** Servers with nothing to be said to that are kept in memory. */
const MAX_IDLE_DESTINATIONS = 2_000

export function createOutgoing(deps: {
  readonly db: Database
  readonly serverName: ServerName
  readonly policy: ServerPolicy
  readonly peers: Pick<Peers, 'sendTransaction'>
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly erasedUsers: Pick<ErasedUsers, 'veil'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}): Outgoing {
  const { db, serverName, policy, registry, events: cache, erasedUsers, clock, random, log } = deps
  const destinations = new Map<ServerName, Destination>()
  let isOpen = false
  let mayBeKept = MAX_IDLE_DESTINATIONS
  const queue: Entry[] = []
  let spreading: Promise<void> | undefined
  /** The last event that was committed, and the last up to which every destination knows of all that concern it. */
  let seen = 0
  let position = 0
  const held = new Set<{ readonly position: number }>()
  const handedOn = () => Math.min(queue.length > 0 ? position : seen, ...[...held].map((hold) => hold.position))
  const record = new SendingRecord({ db, clock, log, position: handedOn })

  const access = createServerAccess({ db, registry, events: cache, erasedUsers })
  const parts = {
    serverName,
    peers: deps.peers,
    clock,
    random,
    log: createDestinationLog({ log, clock }),
    missed: createCatchUp({ db, serverName, registry, events: cache, access }),
    changed: record.changed,
    isOpen: () => isOpen,
    keptEdus: (server: ServerName) => keptEdusFor(db, server, MAX_KEPT_EDUS_PER_TRANSACTION),
    taken: (nids: readonly number[]) => db.tx((tx) => removeEdus(tx, nids)),
    turns: {
      doubtful: new Turns(MAX_DOUBTFUL_AT_ONCE, DOUBTFUL_EVERY_MS),
      gone: new Turns(MAX_DOUBTFUL_AT_ONCE, GONE_EVERY_MS),
    },
  }

  function destinationOf(server: ServerName): Destination {
    const known = destinations.get(server)
    if (known) return known
    if (destinations.size >= mayBeKept) forgetIdle()
    const made = new Destination(server, parts)
    destinations.set(server, made)
    return made
  }

  function forgetIdle(): void {
    for (const [server, destination] of destinations) {
      if (destination.isIdle && !record.has(server)) destinations.delete(server)
    }
    // Not for each new one, where none of the others is idle.
    mayBeKept = destinations.size + MAX_IDLE_DESTINATIONS
  }

  const reaches = (server: ServerName) => server !== serverName && policy.refusalOf(server) === undefined

  function sendEdu(servers: Iterable<ServerName>, edu: JsonObject): void {
    for (const server of servers) if (reaches(server)) destinationOf(server).edu(edu)
  }

  function kept(servers: Iterable<ServerName>, isFromBefore = false): void {
    for (const server of servers) if (reaches(server)) destinationOf(server).kept(isFromBefore)
  }

  function serversFor({ event, except }: Entry, present: ReadonlySet<ServerName>): ServerName[] {
    const servers = new Set(present)
    // Who is put out is told so.
    if (event.type === 'm.room.member') servers.add(serverOf(event.pdu.state_key as UserId))
    if (except !== undefined) servers.delete(except)
    if (isInvitation(event)) servers.delete(targetsServer(event, present))
    return [...servers].filter(reaches)
  }

  async function spread(): Promise<void> {
    for (let entry = queue[0]; entry; entry = queue[0]) {
      const { room, event, except } = entry
      const present = await serversToTell(db, room)
      for (const server of serversFor(entry, present)) {
        const destination = destinationOf(server)
        destination.pdu(event)
        if (!present.has(server)) record.part(destination, event.nid)
      }
      if (except !== undefined) record.handedOn(event.nid)
      queue.shift()
    }
    position = seen
  }

  /** Goes on until all are handed out: a database that is away comes back. */
  function startSpreading(): void {
    spreading ??= spread()
      .catch((err) => {
        log.error({ err }, 'events could not be handed to other servers; it will be tried again')
        setTimeout(startSpreading, SPREAD_AGAIN_MS).unref()
      })
      .finally(() => {
        spreading = undefined
      })
  }

  function add(entries: readonly Entry[]): void {
    queue.push(...entries)
    startSpreading()
  }

  /** Events that were committed and that nothing was noted of. */
  async function takeUp(from: number): Promise<void> {
    for (let next = from + 1; ; ) {
      const nids = await getOwnEvents(db, next, serverName, MAX_PDUS_IN_MEMORY)
      const events = [...(await cache.load(nids)).values()].sort((a, b) => a.nid - b.nid)
      for (const event of events) add([{ room: await registry.getByNid(event.roomNid), event, except: undefined }])
      await spreading
      if (nids.length < MAX_PDUS_IN_MEMORY) return
      next = nids.at(-1)! + 1
    }
  }

  async function takeUpForwards(): Promise<void> {
    const due = await getForwardsDue(db)
    const found = await cache.load(due.map(({ event_nid }) => event_nid))
    for (const { event_nid, from_server } of due) {
      const event = found.get(event_nid)
      if (event) add([{ room: await registry.getByNid(event.roomNid), event, except: from_server }])
    }
  }

  /** Who lagged behind is tried again, first who failed least. */
  async function takeUpDestinations(): Promise<void> {
    const rows = await getDestinations(db)
    record.begin(rows, await serversWithPartings(db))
    mayBeKept += rows.length
    for (const row of rows) {
      destinations.set(row.server, new Destination(row.server, parts, row))
    }
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
      seen = Math.max(seen, ...events.map(({ nid }) => nid))
      record.soon()
      if (concerned.length > 0) add(concerned.map((event) => ({ room, event, except: undefined })))
    },
    async forward(room, event, from) {
      const row = { event_nid: event.nid, from_server: from }
      if (!(await db.tx((tx) => insertForward(tx, row, clock.now())))) return
      add([{ room, event, except: from }])
    },
    toRoom(room, edu) {
      if (!room.isShared) return
      serversToTell(db, room)
        .then((servers) => sendEdu(servers, edu))
        .catch((err) => log.debug({ err }, 'nobody was told what passes in a room'))
    },
    edu: sendEdu,
    kept: (servers) => kept(servers),
    heard: (server) => destinations.get(server)?.heard(),
    holdBack(at) {
      const hold = { position: at }
      held.add(hold)
      return () => {
        held.delete(hold)
        record.soon()
      }
    },
    async start(current) {
      await takeUpDestinations()
      const sent = await sentPosition(db)
      position = sent ?? current
      seen = current
      if (sent === undefined) await record.saveNow()
      else await takeUp(sent)
      await takeUpForwards()
      return sent
    },
    open() {
      isOpen = true
      for (const [server, destination] of destinations) {
        // Who is shut out for a while keeps its place.
        if (!destination.isIdle && reaches(server)) destination.wake()
      }
    },
    async close() {
      await spreading
      await Promise.all([...destinations.values()].map((destination) => destination.close()))
      await record.close()
      await record.saveNow()
    },
  }
}

function isInvitation(event: RoomEvent): boolean {
  return event.type === 'm.room.member' && event.content.membership === 'invite'
}

/** The invited user's server was given the invitation by hand, unless it is in the room anyway. */
function targetsServer(event: RoomEvent, present: ReadonlySet<ServerName>): ServerName {
  const server = serverOf(event.pdu.state_key as UserId)
  return present.has(server) ? ('' as ServerName) : server
}

function isOwn({ standing, isInTimeline, isHistory, sender }: RoomEvent, serverName: ServerName): boolean {
  return standing === undefined && isInTimeline && !isHistory && serverOf(sender) === serverName
}

/** The first of ours has come in: the server that let them in has the event, and passes it on (server-server API, "Joining Rooms"). */
function isArrival({ type, senderNid, streamPos }: RoomEvent, { localMembers }: Room): boolean {
  return type === 'm.room.member' && localMembers.size === 1 && localMembers.get(senderNid)?.since === streamPos
}

function isAboutAnother({ type, pdu }: RoomEvent, serverName: ServerName): boolean {
  return type === 'm.room.member' && serverOf(pdu.state_key as UserId) !== serverName
}
