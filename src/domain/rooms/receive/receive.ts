import type { ReadPdu } from '../../../core/event/read.ts'
import type { RoomId, ServerName } from '../../../core/ids.ts'
import type { ReadJson } from '../../../core/json.ts'
import { createKeyedQueue, type KeyedQueue } from '../../../core/keyed-queue.ts'
import type { Database } from '../../../store/db/db.ts'
import type { EventCache } from '../room/event-cache.ts'
import { membersAreMissing } from '../room/partial-state.ts'
import type { Room } from '../room/room.ts'
import type { FederationQueries } from './federation-queries.ts'
import { Intake } from './intake.ts'
import { isRefusal, type PduChecks } from './pdu-checks.ts'
import { createReceivePass, isOutage, type ReceivedBatch, type ReceivePassParts } from './receive-pass.ts'
import { dropped, type Received } from './received.ts'

/** The one path for events of other servers (server-server API, "Checks performed on receipt of a PDU"). */
export interface Receiver {
  /**
   * Processes events of one room that a server sent, in any order. Resolves when they are durable, with an outcome for each, in the order
   * given. Calls for the same room run one after another.
   *
   * @throws ProtocolError 503 while most of the room's members are not known, because no event can be authorised
   */
  receive(origin: ServerName, roomId: RoomId, pdus: readonly ReadJson[], keep?: Keep): Promise<readonly Received[]>
}

export interface ReceiverParts extends ReceivePassParts {
  readonly serverName: ServerName
  readonly db: Database
  readonly events: EventCache
  readonly queries: FederationQueries
  readonly pduChecks: PduChecks
  /** One queue per room: its holder writes remote events. */
  readonly roomQueue: KeyedQueue<RoomId>
}

/** How often events are processed again because others wrote to their room. */
const MAX_ATTEMPTS = 8

/** Which events are stored: also rejected ones, so that events that build on them can be authorised, or only accepted ones. */
export type Keep = 'all' | 'accepted'

/** The reason for dropping events of a room that we do not know. */
export const NOT_HERE = 'this server does not take part in the room'

export function createReceiver(parts: ReceiverParts): Receiver {
  const { registry, pduChecks, roomQueue } = parts
  const pass = createReceivePass(parts)
  /** For each room and server, one batch at a time fetches missing events. */
  const fetching = createKeyedQueue<string>()

  /** The room, if we are or were in it. */
  async function knownRoom(roomId: RoomId): Promise<Room | undefined> {
    const room = await registry.get(roomId)
    return room && room.pending.extremities.length > 0 ? room : undefined
  }

  async function takeAll(
    origin: ServerName,
    roomId: RoomId,
    reads: readonly ReadPdu[],
    batch: ReceivedBatch,
    isCompleted: boolean,
  ): Promise<'done' | 'lacking'> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const left = reads.filter(({ eventId }) => !batch.results.has(eventId))
      const room = left.length === 0 ? undefined : await knownRoom(roomId)
      if (!room) break
      try {
        const intake = new Intake(parts, room, origin)
        const { order, lacks } = await intake.order(left)
        if (lacks && attempt === 0 && !isCompleted) return 'lacking'
        await pass(intake, order, batch)
        noteCircles(left, order, batch)
      } catch (error) {
        if (batch.isOneByOne || isOutage(error)) throw error
        batch.isOneByOne = true
      }
    }
    return 'done'
  }

  /**
   * Processes events together with the missing events before them. The room queue is free while these are fetched, because their server may
   * be slow.
   */
  async function takeWithMissing(
    origin: ServerName,
    roomId: RoomId,
    reads: readonly ReadPdu[],
    batch: ReceivedBatch,
  ): Promise<void> {
    const take = (all: readonly ReadPdu[], isCompleted: boolean) =>
      roomQueue.run(roomId, () => takeAll(origin, roomId, all, batch, isCompleted))
    if ((await take(reads, false)) === 'done') return
    await fetching.run(`${origin} ${roomId}`, async () => {
      const room = await knownRoom(roomId)
      await take(room ? await new Intake(parts, room, origin).complete(reads) : reads, true)
    })
  }

  return {
    async receive(origin, roomId, pdus, keep = 'all') {
      const room = await knownRoom(roomId)
      if (!room) return pdus.map(() => dropped(NOT_HERE))
      if (room.partialState?.lacksMembers) throw membersAreMissing()
      const reads = await pduChecks.checkEach(room, pdus)
      const passed = new Map(reads.flatMap((read) => (isRefusal(read) ? [] : [[read.eventId, read] as const])))
      const offered = new Set(keep === 'accepted' ? passed.keys() : [])
      const batch: ReceivedBatch = { results: new Map(), offered, isOneByOne: false }
      await takeWithMissing(origin, roomId, [...passed.values()], batch)
      return reads.map((read) => {
        if (isRefusal(read)) return dropped(read.reason)
        return batch.results.get(read.eventId) ?? dropped('the room is too busy just now', read.eventId)
      })
    },
  }
}

/** Drops events that form a circle, which room versions without hashes as ids allow. */
function noteCircles(reads: readonly ReadPdu[], order: readonly ReadPdu[], { results }: ReceivedBatch): void {
  if (order.length === reads.length) return
  const ordered = new Set(order.map(({ eventId }) => eventId))
  for (const { eventId } of reads) {
    if (!ordered.has(eventId)) results.set(eventId, dropped('it builds on itself', eventId))
  }
}
