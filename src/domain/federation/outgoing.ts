import type { Logger } from 'pino'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { ServerPolicy } from '../../core/server-policy.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { Database } from '../../store/db.ts'
import {
  type DestinationRow,
  getDestinations,
  getLastOwnEventsFor,
  getOwnEvents,
  getOwnEventsFor,
  saveSending,
  sentPosition,
} from '../../store/federation-destinations.ts'
import { keptEdusFor, removeEdus, serversWithEdus } from '../../store/federation-edus.ts'
import { getForwardsDue, insertForward, markForwards } from '../../store/federation-forwards.ts'
import { getJoinedUsers } from '../../store/rooms.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_DOUBTFUL_AT_ONCE, MAX_KEPT_EDUS_PER_TRANSACTION, MAX_PDUS_IN_MEMORY } from '../limits.ts'
import type { EventCache } from '../rooms/event-cache.ts'
import type { RoomRegistry } from '../rooms/registry.ts'
import type { Room } from '../rooms/room.ts'
import type { RoomEvent } from '../rooms/room-event.ts'
import { serversToTell } from '../rooms/servers-to-tell.ts'
import { Destination, type OutgoingPdu } from './destination.ts'
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
  /** Takes up what was left when the process ended. */
  start(rooms: { readonly registry: RoomRegistry; readonly events: EventCache }, position: number): Promise<void>
  close(): Promise<void>
}

interface Entry {
  readonly room: Room
  readonly event: RoomEvent
  readonly except: ServerName | undefined
}

const SAVE_EVERY_MS = 2_000
const SPREAD_AGAIN_MS = 1_000
/** Servers that did not answer when the process ended are tried again one in so long: the first minute sees the first sixty. */
const FIRST_TRIES_EVERY_MS = 1_000
/** Servers with nothing to be said to that are kept in memory. */
const MAX_IDLE_DESTINATIONS = 2_000

export function createOutgoing(deps: {
  readonly db: Database
  readonly serverName: ServerName
  readonly policy: ServerPolicy
  readonly peers: Pick<Peers, 'sendTransaction'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}): Outgoing {
  const { db, serverName, policy, clock, log } = deps
  const destinations = new Map<ServerName, Destination>()
  /** Those that have a row in the database, as it stands there. */
  const saved = new Map<ServerName, DestinationRow>()
  let rooms: Parameters<Outgoing['start']>[0] | undefined
  const queue: Entry[] = []
  /** Forwarded events of which every destination knows that needs them, and that the database does not know to be. */
  let handedOn: number[] = []
  let spreading: Promise<void> | undefined
  /** The last event that was committed, and the last up to which every destination knows of all that concern it. */
  let seen = 0
  let position = 0
  let savedPosition = -1
  let timer: NodeJS.Timeout | undefined
  let saving: Promise<void> | undefined

  async function missed(server: ServerName, from: number): Promise<OutgoingPdu[]> {
    const next = await getOwnEventsFor(db, from, serverName, server, MAX_PDUS_IN_MEMORY)
    const nids = next.length < MAX_PDUS_IN_MEMORY ? next : await getLastOwnEventsFor(db, from, serverName, server)
    return [...(await rooms!.events.load(nids)).values()].sort((a, b) => a.nid - b.nid)
  }

  const parts = {
    ...deps,
    missed,
    keptEdus: (server: ServerName) => keptEdusFor(db, server, MAX_KEPT_EDUS_PER_TRANSACTION),
    taken: (nids: readonly number[]) => db.tx((tx) => removeEdus(tx, nids)),
    turns: new Turns(MAX_DOUBTFUL_AT_ONCE),
  }

  function destinationOf(server: ServerName): Destination {
    const known = destinations.get(server)
    if (known) return known
    if (destinations.size > MAX_IDLE_DESTINATIONS + saved.size) forgetIdle()
    const made = new Destination(server, parts)
    destinations.set(server, made)
    return made
  }

  function forgetIdle(): void {
    for (const [server, destination] of destinations) {
      if (destination.isIdle && !saved.has(server)) destinations.delete(server)
    }
  }

  const serversIn = (room: Room) => room.servers.of(() => getJoinedUsers(db, room.nid))

  const reaches = (server: ServerName) => server !== serverName && policy.refusalOf(server) === undefined

  function sendEdu(servers: Iterable<ServerName>, edu: JsonObject): void {
    for (const server of servers) if (reaches(server)) destinationOf(server).edu(edu)
  }

  function kept(servers: Iterable<ServerName>, isFromBefore = false): void {
    for (const server of servers) if (reaches(server)) destinationOf(server).kept(isFromBefore)
  }

  async function serversFor({ room, event, except }: Entry): Promise<ServerName[]> {
    const joined = await serversIn(room)
    const servers = new Set([...joined.keys(), ...(room.filling?.serversMeanwhile ?? [])])
    // Who is put out is told so.
    if (event.type === 'm.room.member') servers.add(serverOf(event.pdu.state_key as UserId))
    if (except !== undefined) servers.delete(except)
    if (isInvitation(event)) servers.delete(targetsServer(event, joined))
    return [...servers].filter(reaches)
  }

  async function spread(): Promise<void> {
    for (let entry = queue[0]; entry; entry = queue[0]) {
      const { event, except } = entry
      for (const server of await serversFor(entry)) destinationOf(server).pdu(event)
      if (except !== undefined) handedOn.push(event.nid)
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

  function save(): void {
    saving = saveNow()
      .catch((err) => log.warn({ err }, 'how far events were sent could not be noted; it will be tried again'))
      .finally(() => {
        saving = undefined
        timer =
          saved.size > 0 || handedOn.length > 0 || seen !== savedPosition
            ? setTimeout(save, SAVE_EVERY_MS).unref()
            : undefined
      })
  }

  /** The position and who lags behind it, as of one moment; only what is news is written. */
  async function saveNow(): Promise<void> {
    const at = queue.length > 0 ? position : seen
    const marks = [...handedOn]
    const behind = new Map([...destinations].flatMap(([server, { row }]) => (row ? [[server, row] as const] : [])))
    const news = [...behind.values()].filter((row) => isNews(row, saved.get(row.server)))
    const caughtUp = [...saved.keys()].filter((server) => !behind.has(server))
    if (at === savedPosition && news.length === 0 && caughtUp.length === 0 && marks.length === 0) return
    await db.tx(async (tx) => {
      await saveSending(tx, at, news, caughtUp)
      if (marks.length > 0) await markForwards(tx, marks)
    })
    handedOn = handedOn.slice(marks.length)
    savedPosition = at
    for (const server of caughtUp) saved.delete(server)
    for (const row of news) saved.set(row.server, row)
  }

  /** Events that were committed and that nothing was noted of. */
  async function takeUp(from: number): Promise<void> {
    for (let next = from + 1; ; ) {
      const nids = await getOwnEvents(db, next, serverName, MAX_PDUS_IN_MEMORY)
      const events = [...(await rooms!.events.load(nids)).values()].sort((a, b) => a.nid - b.nid)
      for (const event of events)
        add([{ room: await rooms!.registry.getByNid(event.roomNid), event, except: undefined }])
      await spreading
      if (nids.length < MAX_PDUS_IN_MEMORY) return
      next = nids.at(-1)! + 1
    }
  }

  async function takeUpForwards(): Promise<void> {
    const due = await getForwardsDue(db)
    const found = await rooms!.events.load(due.map(({ event_nid }) => event_nid))
    for (const { event_nid, from_server } of due) {
      const event = found.get(event_nid)
      if (event) add([{ room: await rooms!.registry.getByNid(event.roomNid), event, except: from_server }])
    }
  }

  /** Who lagged behind is tried soon, however long it has been away: perhaps it was us. */
  async function takeUpDestinations(): Promise<void> {
    let away = 0
    for (const row of await getDestinations(db)) {
      const destination = new Destination(row.server, parts, row)
      destinations.set(row.server, destination)
      saved.set(row.server, row)
      // Who is shut out for a while keeps its place.
      if (reaches(row.server)) destination.startWithin(row.failures === 0 ? 0 : FIRST_TRIES_EVERY_MS * away++)
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
      timer ??= setTimeout(save, SAVE_EVERY_MS).unref()
      if (concerned.length > 0) add(concerned.map((event) => ({ room, event, except: undefined })))
    },
    async forward(room, event, from) {
      const row = { event_nid: event.nid, from_server: from }
      if (!(await db.tx((tx) => insertForward(tx, row, clock.now())))) return
      timer ??= setTimeout(save, SAVE_EVERY_MS).unref()
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
    async start(given, current) {
      rooms = given
      await takeUpDestinations()
      const sent = await sentPosition(db)
      position = sent ?? current
      seen = current
      if (sent === undefined) await saveNow()
      else await takeUp(sent)
      await takeUpForwards()
    },
    async close() {
      clearTimeout(timer)
      await spreading
      await saving
      await Promise.all([...destinations.values()].map((destination) => destination.close()))
      await saveNow()
    },
  }
}

function isNews(row: DestinationRow, known: DestinationRow | undefined): boolean {
  const { first_unsent, failures, retry_at } = row
  return known?.first_unsent !== first_unsent || known.failures !== failures || known.retry_at !== retry_at
}

function isInvitation(event: RoomEvent): boolean {
  return event.type === 'm.room.member' && event.content.membership === 'invite'
}

/** The invited user's server was given the invitation by hand, unless it is in the room anyway. */
function targetsServer(event: RoomEvent, joined: ReadonlyMap<ServerName, unknown>): ServerName {
  const server = serverOf(event.pdu.state_key as UserId)
  return joined.has(server) ? ('' as ServerName) : server
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
