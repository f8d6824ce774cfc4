import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import { isOwnLeave } from '../../core/event/content.ts'
import { eventIdIn } from '../../core/event/read.ts'
import type { EventId, RoomId, ServerName } from '../../core/ids.ts'
import { isObject, type JsonValue, type ReadJson } from '../../core/json.ts'
import type { KeyedQueue } from '../../core/keyed-queue.ts'
import type { Database } from '../../store/db/db.ts'
import type { Gate } from '../moderation/gate.ts'
import { NOT_HERE, type Receiver } from '../rooms/receive/receive.ts'
import type { Received } from '../rooms/receive/received.ts'
import { isKickOrBan } from '../rooms/remote/partial-state-kicks.ts'
import type { Resync } from '../rooms/remote/resync.ts'
import type { PartialState } from '../rooms/room/partial-state.ts'
import type { PartialStateRooms } from '../rooms/room/partial-state-rooms.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import { createHeldEvents, type Outcome } from './held-events.ts'
import type { HeldReceipts } from './held-receipts.ts'
import type { Invitations } from './invitations.ts'
import type { ServerAccess } from './server-access.ts'

/** The PDUs of other servers' transactions, one room at a time. */
export interface TransactionPdus {
  /**
   * Processes what a server sent for one room. Resolves once it is durable, with an outcome for each event. A room that fails does not
   * affect others: each of its events gets an error.
   *
   * @throws ProtocolError 503: the sender will send them again
   */
  take(origin: ServerName, roomId: RoomId, pdus: readonly ReadJson[]): Promise<readonly Outcome[]>
  /** Processes the events and receipts that waited for a room's resync, oldest first, and stops holding. */
  takeHeld(partialState: PartialState): Promise<void>
}

export interface TransactionPduParts {
  readonly db: Database
  readonly registry: RoomRegistry
  readonly receiver: Receiver
  readonly partialStateRooms: Pick<PartialStateRooms, 'end'>
  readonly resync: Pick<Resync, 'hurry'>
  readonly access: ServerAccess
  readonly gate: Pick<Gate, 'shuns'>
  readonly invitations: Pick<Invitations, 'rescind'>
  readonly log: Pick<Logger, 'error'>
}

/** Holds events and receipts of partial-state rooms. */
export interface Holding {
  /** Runs holding and the end of holding one after another for a room. */
  readonly turns: KeyedQueue<number>
  readonly receipts: HeldReceipts
}

export function createTransactionPdus(parts: TransactionPduParts, { turns, receipts }: Holding): TransactionPdus {
  const { db, registry, receiver, partialStateRooms, resync, access, gate, invitations, log } = parts
  const held = createHeldEvents({
    db,
    partialStateRooms,
    turns,
    receipts,
    take: (origin, roomId, pdus) => takeSafely(origin, roomId, pdus, takePresent),
  })

  async function takeRoom(origin: ServerName, roomId: RoomId, pdus: readonly ReadJson[]): Promise<Outcome[]> {
    const room = await registry.get(roomId)
    const outcomes = room?.partialState?.holdsEvents
      ? await held.hold(origin, room, room.partialState, pdus)
      : undefined
    if (!room || !outcomes) return takePresent(origin, roomId, pdus)
    if (pdus.some(({ value }) => isObject(value) && isKickOrBan(value) && isOfOurs(room, value.state_key))) {
      if (room.partialState) resync.hurry(room.partialState)
    }
    if (await access.isIn(origin, room)) return outcomes
    return pdus.map(({ value }) => ({ eventId: statedId(value), error: NOT_HERE }))
  }

  /** The id of an event as far as the server may know of its room. */
  const idsFor =
    (origin: ServerName, room: Room | undefined) =>
    async ({ value }: ReadJson) =>
      room && (await access.mayKnowOf(origin, room)) ? eventIdIn(room.version, value) : statedId(value)

  /** What a banned server sends is refused, but that its users leave. */
  async function takeShunned(
    origin: ServerName,
    roomId: RoomId,
    pdus: readonly ReadJson[],
    error: string,
  ): Promise<Outcome[]> {
    const leaves = pdus.filter(({ value }) => isObject(value) && isOwnLeave(value))
    const refused = pdus.filter((pdu) => !leaves.includes(pdu))
    const idIn = idsFor(origin, await registry.get(roomId))
    const outcomes = await Promise.all(refused.map(async (pdu) => ({ eventId: await idIn(pdu), error })))
    return leaves.length === 0 ? outcomes : [...outcomes, ...(await takeRoom(origin, roomId, leaves))]
  }

  async function takePresent(origin: ServerName, roomId: RoomId, pdus: readonly ReadJson[]): Promise<Outcome[]> {
    const room = await registry.get(roomId)
    const idIn = idsFor(origin, room)
    if (room && !(await access.isAllowed(origin, room))) {
      const isShutOut = (await access.standing(origin, room)) === 'refused'
      const error = isShutOut ? `the access list of the room shuts ${origin} out` : NOT_HERE
      return Promise.all(pdus.map(async (pdu) => ({ eventId: await idIn(pdu), error })))
    }
    const isAbsent = !room || room.localMembers.size === 0
    const takenBack = isAbsent ? await takeBackInvitations(origin, roomId, pdus) : []
    const isStrange = !room || !(await access.isIn(origin, room))
    const received = await receiver.receive(origin, roomId, pdus, isStrange ? 'accepted' : 'all')
    const isHidden = isStrange && !(room && (await access.isIn(origin, room)))
    return Promise.all(
      received.map(async (one, index) => {
        if (takenBack[index] !== undefined) return { eventId: takenBack[index], error: undefined }
        // A server that is not in the room gets the same answer as for an unknown room.
        const error = isHidden && one.kind !== 'accepted' ? NOT_HERE : errorOf(one)
        const eventId = error === NOT_HERE ? undefined : one.eventId
        return { eventId: eventId ?? (await idIn(pdus[index]!)), error }
      }),
    )
  }

  /** We may get an event that takes back an invitation to a room that we are not in. */
  async function takeBackInvitations(origin: ServerName, roomId: RoomId, pdus: readonly ReadJson[]) {
    const takenBack: (EventId | undefined)[] = []
    for (const pdu of pdus) takenBack.push(await invitations.rescind(origin, roomId, pdu))
    return takenBack
  }

  /** A room that fails, or takes long, does not affect others. */
  async function takeSafely(
    origin: ServerName,
    roomId: RoomId,
    pdus: readonly ReadJson[],
    take: typeof takeRoom,
  ): Promise<Outcome[]> {
    try {
      return await take(origin, roomId, pdus)
    } catch (err) {
      // With this status the sender sends the transaction again.
      if (err instanceof ProtocolError && err.status === 503) throw err
      log.error({ err, origin, roomId }, 'events of another server could not be taken in')
      return pdus.map(({ value }) => ({ eventId: statedId(value), error: 'this server failed to take it in' }))
    }
  }

  return {
    take(origin, roomId, pdus) {
      const reason = gate.shuns(origin)
      if (reason === undefined) return takeSafely(origin, roomId, pdus, takeRoom)
      return takeSafely(origin, roomId, pdus, (...those) => takeShunned(...those, reason))
    },
    takeHeld: held.takeAll,
  }
}

function isOfOurs({ localMembers }: Room, userId: JsonValue | undefined): boolean {
  return [...localMembers.values()].some((member) => member.userId === userId)
}

/**
 * The event id that an event of an old room version contains. In later versions the id cannot be computed without knowing the version.
 */
function statedId(pdu: JsonValue): string | undefined {
  return isObject(pdu) && typeof pdu.event_id === 'string' ? pdu.event_id : undefined
}

function errorOf({ kind, reason }: Received): string | undefined {
  return kind === 'dropped' || kind === 'rejected' ? (reason ?? 'it was not accepted') : undefined
}
