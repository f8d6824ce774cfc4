import type { Logger } from 'pino'
import type { ServerName } from '../../core/ids.ts'
import { getStream, type QueueRow } from '../../store/appservices/appservice-queue.ts'
import type { Database } from '../../store/db/db.ts'
import { getRooms } from '../../store/rooms/rooms.ts'
import type { Clock, Random } from '../clock.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Appservice } from './appservice.ts'
import { createInterest, type Interest, type PlacedEvent } from './interest.ts'
import { createInvitationState } from './invitation-state.ts'
import type { AppserviceNews } from './news.ts'
import { createPace } from './pace.ts'
import { createQueueStore } from './queue-store.ts'
import type { AppserviceRegistry } from './registry.ts'
import { type ReadPage, ServiceQueue } from './service-queue.ts'
import { createTransactionExtras, type ExtrasParts, NO_EXTRAS } from './transaction-extras.ts'

/** Delivers a transaction to a service. Returns why it failed, if it did. */
export type Deliver = (service: Appservice, txnId: string, body: string) => Promise<string | undefined>

/** A queue for each service that gets events. It follows changes of the registrations. */
export interface ServiceQueues {
  readonly byId: ReadonlyMap<string, ServiceQueue>
  /** Continues where the previous process ended. */
  start(rows: readonly QueueRow[]): void
  /** Stops adding and removing queues. */
  freeze(): void
  close(): Promise<void>
}

export interface ServiceQueueParts {
  readonly db: Database
  readonly serverName: ServerName
  readonly registry: AppserviceRegistry
  readonly clock: Clock
  readonly random: Random
  readonly news: AppserviceNews
  readonly events: EventCache
  readonly rooms: Pick<RoomRegistry, 'getByNid'>
  readonly keyCounts: ExtrasParts['keyCounts']
  readonly presenceOf: ExtrasParts['presenceOf']
  readonly deliver: Deliver
  readonly log: Logger
}

const PAGE = 200

/**
 * @param stream finds the services that events concern, which may differ after a registration change; and the newest committed position
 */
export function createServiceQueues(
  parts: ServiceQueueParts,
  stream: { readonly interest: Pick<Interest, 'clear'>; seen(): number },
): ServiceQueues {
  const { db, serverName, registry, clock, random, news, events, keyCounts, presenceOf, deliver, log } = parts
  const store = createQueueStore(db)
  const pace = createPace(clock)
  const byId = new Map<string, ServiceQueue>()
  /** Removed services whose last transaction is still in flight. A service that comes back continues from there. */
  const closing = new Set<string>()
  let isOver = false
  let rows = new Map<string, QueueRow>()
  const extrasOf = createTransactionExtras({ db, registry, clock, news, events, keyCounts, presenceOf })
  const invitationState = createInvitationState({ services: registry, registry: parts.rooms })
  const readFor = createStreamReader(db, events)

  function open(service: Appservice): void {
    const { id } = service
    const saved = rows.get(id)
    const own = createInterest({ db, events, serverName, registry })
    let readUpTo: number | undefined
    const queue = new ServiceQueue(
      {
        ...{ id, clock, random, log, store, pace, events },
        // Uses the current registration.
        deliver: async (txnId, body) => {
          const now = registry.byId(id)
          return now === undefined ? 'it is no longer registered' : deliver(now, txnId, body)
        },
        async read(after) {
          // The cached interest is valid only at the position where it ended.
          if (after !== readUpTo) own.clear()
          const page = await readFor(id, own, after)
          readUpTo = page.upTo
          return page
        },
        async extras(newsAfter, taken) {
          const now = registry.byId(id)
          return now === undefined ? NO_EXTRAS : extrasOf(now, newsAfter, taken)
        },
        invitationState: (taken) => invitationState(id, taken),
        answered: (upTo) => news.answered(id, upTo),
      },
      saved,
      saved ?? freshRow(id, stream.seen(), clock.now()),
      stream.seen(),
    )
    byId.set(id, queue)
    queue.wake()
  }

  /** Adds, replaces and removes queues after a registration change. */
  function renew(): void {
    if (isOver) return
    stream.interest.clear()
    const wanted = new Map(
      registry
        .all()
        .filter(isSent)
        .map((service) => [service.id, service]),
    )
    for (const [id, queue] of byId) {
      if (wanted.has(id)) continue
      byId.delete(id)
      closing.add(id)
      void queue.close().then(() => {
        rows.set(id, queue.row)
        closing.delete(id)
        renew()
      })
    }
    for (const [id, service] of wanted) if (!byId.has(id) && !closing.has(id)) open(service)
  }

  return {
    byId,
    start(saved) {
      rows = new Map(saved.map((row) => [row.appservice_id, row]))
      registry.onChange(renew)
      renew()
    },
    freeze() {
      isOver = true
    },
    async close() {
      await Promise.all([...byId.values()].map((queue) => queue.close()))
    },
  }
}

/** Reads the stream for one service that missed it. */
function createStreamReader(db: Database, events: EventCache) {
  return async (id: string, own: Interest, after: number): Promise<ReadPage> => {
    const found = await getStream(db, after, PAGE)
    const [loaded, names] = await Promise.all([
      events.load(found.map(({ event_nid }) => event_nid)),
      getRooms(db, [...new Set(found.map(({ room_nid }) => room_nid))]),
    ])
    const ids = new Map(names.map(({ room_nid, room_id }) => [room_nid, room_id]))
    const placed: PlacedEvent[] = []
    for (const { event_nid, room_nid } of found) {
      const [event, room] = [loaded.get(event_nid), ids.get(room_nid)]
      // An event of a deleted room concerns no service.
      if (event !== undefined && room !== undefined) placed.push({ room: { nid: room_nid, id: room }, event })
    }
    await own.meet(placed)
    const concerning: PlacedEvent[] = []
    for (const one of placed) {
      const services = await own.of(one.room, one.event)
      if (services.some((service) => service.id === id)) concerning.push(one)
    }
    return { concerning, upTo: found.at(-1)?.position ?? after, isFull: found.length === PAGE }
  }
}

/** @param txn_id the current time, so that a restored database does not reuse a number */
function freshRow(appservice_id: string, position: number, txn_id: number): QueueRow {
  const none = { body: null, up_to: null, failures: 0, retry_at: 0, news_position: 0, news_up_to: null }
  return { appservice_id, position, txn_id, ...none }
}

function isSent({ registration }: Appservice): boolean {
  return registration.url !== null || registration.hosted !== undefined
}
