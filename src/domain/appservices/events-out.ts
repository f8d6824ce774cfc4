import type { JsonObject } from '../../core/json.ts'
import { getQueues } from '../../store/appservices/appservice-queue.ts'
import { getRooms } from '../../store/rooms/rooms.ts'
import type { ReadReceipt } from '../rooms/room/appservices-of-room.ts'
import type { MembershipChange, Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { createInterest, type Interest, type PlacedEvent } from './interest.ts'
import { wantsEphemeral } from './news.ts'
import type { ServiceQueue } from './service-queue.ts'
import { createServiceQueues, type ServiceQueueParts } from './service-queues.ts'

/** Pushes events to application services (application service API, "Pushing events"). */
export interface EventsOut {
  /** Queues events right after their commit, in order. */
  committed(room: Room, events: readonly RoomEvent[], members: readonly MembershipChange[]): void
  aliasesChanged(roomNid: number): void
  /** Events up to a position were committed without a call of `committed`. */
  missed(position: number): void
  /** Sends a room's typing users to interested services. */
  typing(roomNid: number, event: () => JsonObject): void
  /** Sends a read receipt to interested services. */
  read(receipt: () => ReadReceipt): void
  /** A service has sent us a request. */
  heard(id: string): void
  /** How many deliveries in a row each service has failed to take, by id. */
  failures(): ReadonlyMap<string, number>
  /** Continues where the previous process ended. @param position the newest committed one */
  start(position: number): Promise<void>
  close(): Promise<void>
}

const MAX_WAITING = 5_000
const REST_EVERY_MS = 30_000

export function createEventsOut(parts: ServiceQueueParts): EventsOut {
  const { db, serverName, registry, news, events: cache, log } = parts
  /** The newest committed position. */
  let seen = 0
  const interest = createInterest({ db, events: cache, serverName, registry })
  const serviceQueues = createServiceQueues(parts, { interest, seen: () => seen })
  const { byId: queues } = serviceQueues
  const ephemeral = createEphemeralOut(parts, queues, interest)
  let waiting: PlacedEvent[] = []
  let spreading: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

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

  /** All queues must read the stream for what they did not get. */
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
    typing: ephemeral.typing,
    read: ephemeral.read,
    heard: (id) => queues.get(id)?.heard(),
    failures: () => new Map([...queues].map(([id, { row }]) => [id, row.failures])),
    async start(current) {
      seen = current
      serviceQueues.start(await getQueues(db))
      timer = setInterval(() => void rest().catch(() => {}), REST_EVERY_MS).unref()
    },
    async close() {
      serviceQueues.freeze()
      clearInterval(timer)
      await spreading
      await serviceQueues.close()
    },
  }
}

/** Sends typing and receipts to services that ask for them. */
function createEphemeralOut(
  { db, registry, news, log }: ServiceQueueParts,
  queues: ReadonlyMap<string, ServiceQueue>,
  interest: Pick<Interest, 'inRoom'>,
): Pick<EventsOut, 'typing' | 'read'> {
  /** Whether any service wants them. */
  const isHeard = () => registry.all().some((service) => wantsEphemeral(service) && queues.has(service.id))
  const failed = (err: unknown) => log.debug({ err }, 'ephemeral events were not sent to application services')

  /** The name of a room, and the services that are interested in it. */
  async function around(roomNid: number) {
    const [room] = await getRooms(db, [roomNid])
    if (room === undefined) return undefined
    return { roomId: room.room_id, services: await interest.inRoom({ nid: roomNid, id: room.room_id }) }
  }

  async function tellTyping(roomNid: number, event: () => JsonObject): Promise<void> {
    const found = await around(roomNid)
    if (found === undefined) return
    const { roomId, services } = found
    const edu = { ...event(), room_id: roomId }
    for (const service of services) if (wantsEphemeral(service)) queues.get(service.id)?.typing(roomId, edu)
  }

  async function tellReceipt({ roomNid, userId, name, isPublic, event }: ReadReceipt): Promise<void> {
    const found = await around(roomNid)
    if (found === undefined) return
    const services = isPublic ? found.services : news.ephemeralOwners(userId)
    await news.receipt(services, `${found.roomId} ${userId} ${name}`, { ...event, room_id: found.roomId })
  }

  return {
    typing(roomNid, event) {
      if (isHeard()) tellTyping(roomNid, event).catch(failed)
    },
    read(receipt) {
      if (isHeard()) tellReceipt(receipt()).catch(failed)
    },
  }
}
