import type { Logger } from 'pino'
import type { ServerName } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { getQueues, getStream, type QueueRow } from '../../store/appservices/appservice-queue.ts'
import type { Database } from '../../store/db/db.ts'
import { getRooms } from '../../store/rooms/rooms.ts'
import type { Clock, Random } from '../clock.ts'
import type { ReadReceipt } from '../rooms/room/appservices-of-room.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { MembershipChange, Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { Appservice } from './appservice.ts'
import { createInterest, type Interest, type PlacedEvent } from './interest.ts'
import { createInvitationState } from './invitation-state.ts'
import { type AppserviceNews, wantsEphemeral } from './news.ts'
import { createPace } from './pace.ts'
import { createQueueStore } from './queue-store.ts'
import type { AppserviceRegistry } from './registry.ts'
import { type ReadPage, ServiceQueue } from './service-queue.ts'
import { createTransactionExtras, type ExtrasParts, NO_EXTRAS } from './transaction-extras.ts'

/** Hands a transaction to a service; gives why it was not taken. */
export type Deliver = (service: Appservice, txnId: string, body: string) => Promise<string | undefined>

/** What application services are sent by themselves (application service API, "Pushing events"). */
export interface EventsOut {
  /** Takes note of events right after their commit, in order. */
  committed(room: Room, events: readonly RoomEvent[], members: readonly MembershipChange[]): void
  aliasesChanged(roomNid: number): void
  /** Events up to a position were committed of which it was not told. */
  missed(position: number): void
  /** Who types in a room has changed, which services that ask for it are told. */
  typing(roomNid: number, event: () => JsonObject): void
  /** Somebody has read. */
  read(receipt: () => ReadReceipt): void
  /** A service has spoken to us. */
  heard(id: string): void
  /** How often in a row each has not taken what it is sent, by id. */
  failures(): ReadonlyMap<string, number>
  /** Takes up what was left when the process ended. @param position the newest committed one */
  start(position: number): Promise<void>
  close(): Promise<void>
}

const PAGE = 200
const MAX_WAITING = 5_000
const REST_EVERY_MS = 30_000

export function createEventsOut(deps: {
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
}): EventsOut {
  const { db, serverName, registry, clock, random, news, events: cache, keyCounts, presenceOf, deliver, log } = deps
  const store = createQueueStore(db)
  const pace = createPace(clock)
  const queues = new Map<string, ServiceQueue>()
  /** Services that went, and whose last transaction is still under way: one that comes again goes on from there. */
  const closing = new Set<string>()
  let isOver = false
  let rows = new Map<string, QueueRow>()
  const extrasOf = createTransactionExtras({ db, registry, clock, news, events: cache, keyCounts, presenceOf })
  const invitationState = createInvitationState({ services: registry, registry: deps.rooms })
  const interestNow = () => createInterest({ db, events: cache, serverName, registry })
  const interest = interestNow()
  let waiting: PlacedEvent[] = []
  let spreading: Promise<void> | undefined
  /** The newest committed position. */
  let seen = 0
  let timer: NodeJS.Timeout | undefined

  /** Goes through the stream for one service, which was not there when it passed. */
  async function readFor(id: string, own: Interest, after: number): Promise<ReadPage> {
    const found = await getStream(db, after, PAGE)
    const [events, names] = await Promise.all([
      cache.load(found.map(({ event_nid }) => event_nid)),
      getRooms(db, [...new Set(found.map(({ room_nid }) => room_nid))]),
    ])
    const ids = new Map(names.map(({ room_nid, room_id }) => [room_nid, room_id]))
    const placed: PlacedEvent[] = []
    for (const { event_nid, room_nid } of found) {
      const [event, room] = [events.get(event_nid), ids.get(room_nid)]
      // A room that was deleted meanwhile is nobody's.
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

  function open(service: Appservice): void {
    const { id } = service
    const saved = rows.get(id)
    const own = interestNow()
    let readUpTo: number | undefined
    queues.set(
      id,
      new ServiceQueue(
        {
          ...{ id, clock, random, log, store, pace, events: cache },
          // As it is registered now.
          deliver: async (txnId, body) => {
            const now = registry.byId(id)
            return now === undefined ? 'it is no longer registered' : deliver(now, txnId, body)
          },
          async read(after) {
            // What it remembers holds where it ended.
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
        saved ?? fresh(id),
        seen,
      ),
    )
    queues.get(id)!.wake()
  }

  const fresh = (appservice_id: string): QueueRow => {
    // No number of an earlier life of this database comes again.
    const txn_id = clock.now()
    const none = { body: null, up_to: null, failures: 0, retry_at: 0, news_position: 0, news_up_to: null }
    return { appservice_id, position: seen, txn_id, ...none }
  }

  async function spread(): Promise<void> {
    while (waiting.length > 0) {
      const now = waiting
      waiting = []
      await interest.meet(now)
      for (const { room, event } of now) {
        const concerned = interest.of(room, event)
        for (const { id } of concerned instanceof Promise ? await concerned : concerned) {
          queues.get(id)?.offer(room, event)
        }
      }
      const last = now.at(-1)!.event.streamPos
      for (const queue of queues.values()) queue.looked(last, true)
    }
  }

  /** All have to read what was not handed to them. */
  function miss(): void {
    waiting = []
    interest.clear()
    for (const queue of queues.values()) queue.looked(seen, false)
  }

  function wake(): void {
    spreading ??= spread()
      .catch((err) => {
        log.error({ err }, 'events could not be handed to application services; they will be read again')
        miss()
      })
      .finally(() => {
        spreading = undefined
        if (waiting.length > 0) wake()
      })
  }

  /** Services that came, changed or went. */
  function renew(): void {
    if (isOver) return
    interest.clear()
    const wanted = new Map(
      registry
        .all()
        .filter(isSent)
        .map((service) => [service.id, service]),
    )
    for (const [id, queue] of queues) {
      if (wanted.has(id)) continue
      queues.delete(id)
      closing.add(id)
      void queue.close().then(() => {
        rows.set(id, queue.row)
        closing.delete(id)
        renew()
      })
    }
    for (const [id, service] of wanted) if (!queues.has(id) && !closing.has(id)) open(service)
  }

  /** Whether there is anybody who would be told what passes in rooms. */
  const isHeard = () => registry.all().some((service) => wantsEphemeral(service) && queues.has(service.id))

  /** The name of a room, and the services that it concerns. */
  async function around(roomNid: number) {
    const [room] = await getRooms(db, [roomNid])
    if (room === undefined) return undefined
    return { roomId: room.room_id, services: await interest.inRoom({ nid: roomNid, id: room.room_id }) }
  }

  const untold = (err: unknown) => log.debug({ err }, 'no service was told what passes in a room')

  async function tellTyping(roomNid: number, event: () => JsonObject): Promise<void> {
    const found = await around(roomNid)
    if (found === undefined) return
    const { roomId, services } = found
    const told = { ...event(), room_id: roomId }
    for (const service of services) if (wantsEphemeral(service)) queues.get(service.id)?.typing(roomId, told)
  }

  async function tellReceipt({ roomNid, userId, name, isPublic, event }: ReadReceipt): Promise<void> {
    const found = await around(roomNid)
    if (found === undefined) return
    const services = isPublic ? found.services : news.ephemeralOwners(userId)
    await news.receipt(services, `${found.roomId} ${userId} ${name}`, { ...event, room_id: found.roomId })
  }

  async function rest(): Promise<void> {
    await Promise.all([...queues.values()].map((queue) => queue.rest()))
  }

  news.onNews((id) => queues.get(id)?.noticed())

  return {
    committed(room, events, members) {
      seen = Math.max(seen, ...events.map(({ streamPos }) => streamPos))
      if (queues.size === 0) return
      const shown = new Set(events.map(({ nid }) => nid))
      if (members.some(({ isLocal, eventNid }) => isLocal && !shown.has(eventNid))) interest.forget(room.nid)
      for (const event of events)
        if (event.isInTimeline && !event.isHistory) waiting.push({ room: { nid: room.nid, id: room.id }, event })
      if (waiting.length > MAX_WAITING) miss()
      else if (waiting.length > 0) wake()
    },
    missed(position) {
      seen = Math.max(seen, position)
      miss()
    },
    aliasesChanged: (roomNid) => interest.forget(roomNid),
    typing(roomNid, event) {
      if (isHeard()) tellTyping(roomNid, event).catch(untold)
    },
    read(receipt) {
      if (isHeard()) tellReceipt(receipt()).catch(untold)
    },
    heard: (id) => queues.get(id)?.heard(),
    failures: () => new Map([...queues].map(([id, { row }]) => [id, row.failures])),
    async start(current) {
      seen = current
      rows = new Map((await getQueues(db)).map((row) => [row.appservice_id, row]))
      registry.onChange(renew)
      renew()
      timer = setInterval(() => void rest().catch(() => {}), REST_EVERY_MS).unref()
    },
    async close() {
      isOver = true
      clearInterval(timer)
      await spreading
      await Promise.all([...queues.values()].map((queue) => queue.close()))
    },
  }
}

function isSent({ registration }: Appservice): boolean {
  return registration.url !== null || registration.hosted !== undefined
}
