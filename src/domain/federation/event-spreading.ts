import type { Logger } from 'pino'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { Database } from '../../store/db/db.ts'
import { getOwnEvents } from '../../store/federation/federation-catch-up.ts'
import { getForwardsDue } from '../../store/federation/federation-forwards.ts'
import { MAX_PDUS_IN_MEMORY } from '../limits.ts'
import { serversToTell } from '../rooms/room/destinations.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { Destination } from './destination.ts'
import type { SendingRecord } from './sending-record.ts'

/** An event to be sent to the servers of its room. */
export interface Entry {
  readonly room: Room
  readonly event: RoomEvent
  /** The server that it came from, if we forward it. */
  readonly except: ServerName | undefined
}

/** Committed events that are not in the queues of all their destinations yet. */
export class SpreadingQueue {
  readonly entries: Entry[] = []
  /** The nid of the last committed event, and the position up to which all destinations have their events queued. */
  seen = 0
  position = 0
  readonly #held = new Set<{ readonly position: number }>()

  /** The position up to which all events are queued. */
  readonly handedOn = (): number =>
    Math.min(this.entries.length > 0 ? this.position : this.seen, ...[...this.#held].map((hold) => hold.position))

  /** Keeps `handedOn` at a position or before, until the caller releases it. */
  holdBack(position: number): () => void {
    const hold = { position }
    this.#held.add(hold)
    return () => void this.#held.delete(hold)
  }
}

/** Puts events into the queues of their rooms' servers, in order. */
export interface EventSpreading {
  add(entries: readonly Entry[]): void
  /** Continues after a restart with the events that were committed after a position. */
  takeUp(from: number): Promise<void>
  /** Reads the events after one position, up to another, and adds them. */
  missed(position: number, after: number): void
  /** Continues after a restart with the events that were to be forwarded. */
  takeUpForwards(): Promise<void>
  /** Resolves once the current events are queued, or could not be. */
  idle(): Promise<void>
}

const SPREAD_AGAIN_MS = 1_000

export function createEventSpreading(parts: {
  readonly db: Database
  readonly serverName: ServerName
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly queue: SpreadingQueue
  readonly record: SendingRecord
  readonly log: Logger
  reaches(server: ServerName): boolean
  destinationOf(server: ServerName): Destination
}): EventSpreading {
  const { db, serverName, registry, events: cache, queue, record, log, reaches, destinationOf } = parts
  const { entries } = queue
  let spreading: Promise<void> | undefined

  function serversFor({ event, except }: Entry, present: ReadonlySet<ServerName>): ServerName[] {
    const servers = new Set(present)
    // The server of a kicked or banned user must get that event too.
    if (event.type === 'm.room.member') servers.add(serverOf(event.pdu.state_key as UserId))
    if (except !== undefined) servers.delete(except)
    if (isInvitation(event)) servers.delete(targetsServer(event, present))
    return [...servers].filter(reaches)
  }

  async function spread(): Promise<void> {
    for (let entry = entries[0]; entry; entry = entries[0]) {
      const { room, event, except } = entry
      const present = await serversToTell(db, room)
      for (const server of serversFor(entry, present)) {
        const destination = destinationOf(server)
        destination.pdu(event)
        if (!present.has(server)) record.part(destination, event.nid)
      }
      if (except !== undefined) record.handedOn(event.nid)
      entries.shift()
    }
    queue.position = queue.seen
  }

  /** Retries until all events are queued: the database may be unreachable for a while. */
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

  function add(added: readonly Entry[]): void {
    entries.push(...added)
    startSpreading()
  }

  async function takeUp(from: number, upTo = Number.POSITIVE_INFINITY): Promise<void> {
    for (let next = from + 1; next <= upTo; ) {
      const nids = await getOwnEvents(db, next, serverName, MAX_PDUS_IN_MEMORY)
      const events = [...(await cache.load(nids.filter((nid) => nid <= upTo))).values()].sort((a, b) => a.nid - b.nid)
      for (const event of events) add([{ room: await registry.getByNid(event.roomNid), event, except: undefined }])
      await spreading
      if (nids.length < MAX_PDUS_IN_MEMORY) return
      next = nids.at(-1)! + 1
    }
  }

  return {
    add,
    takeUp: (from) => takeUp(from),
    missed(position, after) {
      // If this process ends before they are read, the next one reads them.
      const release = queue.holdBack(after)
      const read = (): void =>
        void takeUp(after, position).then(
          () => {
            release()
            record.soon()
          },
          (err) => {
            log.error({ err }, 'events for other servers could not be read; it will be tried again')
            setTimeout(read, SPREAD_AGAIN_MS).unref()
          },
        )
      read()
    },
    async takeUpForwards() {
      const due = await getForwardsDue(db)
      const found = await cache.load(due.map(({ event_nid }) => event_nid))
      for (const { event_nid, from_server } of due) {
        const event = found.get(event_nid)
        if (event) add([{ room: await registry.getByNid(event.roomNid), event, except: from_server }])
      }
    },
    async idle() {
      await spreading
    },
  }
}

function isInvitation(event: RoomEvent): boolean {
  return event.type === 'm.room.member' && event.content.membership === 'invite'
}

/** The invited user's server already got the invitation by `invite`, unless it is in the room anyway. */
function targetsServer(event: RoomEvent, present: ReadonlySet<ServerName>): ServerName {
  const server = serverOf(event.pdu.state_key as UserId)
  return present.has(server) ? ('' as ServerName) : server
}
