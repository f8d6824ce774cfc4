import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import { eventIdIn } from '../../core/event/read.ts'
import { groupBy } from '../../core/group-by.ts'
import { type EventId, isRoomId, type RoomId, type ServerName } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue, type ReadJson } from '../../core/json.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import type { Database } from '../../store/db/db.ts'
import { findTransaction, insertTransaction } from '../../store/federation/federation-transactions.ts'
import type { Clock } from '../clock.ts'
import { MAX_EDUS_PER_TRANSACTION, MAX_PDUS_PER_TRANSACTION, MAX_ROOMS_AT_ONCE } from '../limits.ts'
import { NOT_HERE, type Receiver } from '../rooms/receive/receive.ts'
import type { Received } from '../rooms/receive/received.ts'
import { isKickOrBan } from '../rooms/remote/partial-state-kicks.ts'
import type { Resync } from '../rooms/remote/resync.ts'
import type { PartialState } from '../rooms/room/partial-state.ts'
import type { PartialStateRooms } from '../rooms/room/partial-state-rooms.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import { createHeldEvents, type Outcome } from './held-events.ts'
import { createHeldReceipts } from './held-receipts.ts'
import type { Invitations } from './invitations.ts'
import type { ServerAccess } from './server-access.ts'

/** An ephemeral unit of data: `{edu_type, content}`. */
export type EduHandler = (origin: ServerName, content: JsonObject) => Promise<void>

export interface ReceivedTransaction {
  readonly origin: ServerName
  readonly txnId: string
  readonly pdus: readonly ReadJson[]
  readonly edus: readonly JsonValue[]
}

/** Takes in what other servers send (server-server API, "Transactions"). */
export interface Transactions {
  /**
   * Gives the body of the answer: an entry per event whose id can be told, with an error for those that were not taken in. The same
   * transaction gets the same answer again, also after a restart, and is not taken in a second time.
   *
   * @throws ProtocolError `M_TOO_LARGE`
   */
  receive(transaction: ReceivedTransaction): Promise<string>
  /** Takes in what had to wait until the members of a room are known, oldest first, and ends the waiting. */
  takeHeld(partialState: PartialState): Promise<void>
}

export interface TransactionParts {
  readonly db: Database
  readonly clock: Clock
  readonly registry: RoomRegistry
  readonly receiver: Receiver
  readonly partialStateRooms: Pick<PartialStateRooms, 'end' | 'all'>
  readonly resync: Pick<Resync, 'hurry'>
  readonly access: ServerAccess
  readonly invitations: Pick<Invitations, 'rescind'>
  readonly edus: Readonly<Record<string, EduHandler>>
  readonly log: Logger
}

export function createTransactions(parts: TransactionParts): Transactions {
  const { db, clock, registry, receiver, access, log } = parts
  const running = new Map<string, Promise<string>>()

  const turns = createKeyedQueue<number>()
  const receipts = createHeldReceipts({
    ...{ ...parts, turns },
    take: (origin, content) => handle(origin, 'm.receipt', async () => content),
  })
  const held = createHeldEvents({ ...parts, turns, receipts, take: (...of) => takeSafely(...of, takePresent) })

  async function takeRoom(origin: ServerName, roomId: RoomId, pdus: readonly ReadJson[]): Promise<Outcome[]> {
    const room = await registry.get(roomId)
    const outcomes = room?.partialState?.holdsEvents
      ? await held.hold(origin, room, room.partialState, pdus)
      : undefined
    if (!room || !outcomes) return takePresent(origin, roomId, pdus)
    if (pdus.some(({ value }) => isObject(value) && isKickOrBan(value) && isOfOurs(room, value.state_key))) {
      if (room.partialState) parts.resync.hurry(room.partialState)
    }
    if (await access.isIn(origin, room)) return outcomes
    return pdus.map(({ value }) => ({ eventId: statedId(value), error: NOT_HERE }))
  }

  async function takePresent(origin: ServerName, roomId: RoomId, pdus: readonly ReadJson[]): Promise<Outcome[]> {
    const room = await registry.get(roomId)
    const idIn = async ({ value }: ReadJson) =>
      room && (await access.mayKnowOf(origin, room)) ? eventIdIn(room.version, value) : statedId(value)
    if (room && !(await access.isAllowed(origin, room))) {
      const isTold = (await access.standing(origin, room)) === 'refused'
      const error = isTold ? `the access list of the room shuts ${origin} out` : NOT_HERE
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
        // A server that is not in the room hears what it would of one that nobody here knows.
        const error = isHidden && one.kind !== 'accepted' ? NOT_HERE : errorOf(one)
        const told = error === NOT_HERE ? undefined : one.eventId
        return { eventId: told ?? (await idIn(pdus[index]!)), error }
      }),
    )
  }

  /** Of rooms that we are not in we hear when an invitation is no more. */
  async function takeBackInvitations(origin: ServerName, roomId: RoomId, pdus: readonly ReadJson[]) {
    const takenBack: (EventId | undefined)[] = []
    for (const pdu of pdus) takenBack.push(await parts.invitations.rescind(origin, roomId, pdu))
    return takenBack
  }

  /** One room that fails, or takes long, holds up no other. */
  async function takeSafely(
    origin: ServerName,
    roomId: RoomId,
    pdus: readonly ReadJson[],
    take = takeRoom,
  ): Promise<Outcome[]> {
    try {
      return await take(origin, roomId, pdus)
    } catch (err) {
      // Told as such, the sender sends it again.
      if (err instanceof ProtocolError && err.status === 503) throw err
      log.error({ err, origin, roomId }, 'events of another server could not be taken in')
      return pdus.map(({ value }) => ({ eventId: statedId(value), error: 'this server failed to take it in' }))
    }
  }

  async function takeEdu(origin: ServerName, edu: JsonValue): Promise<void> {
    const { edu_type: type, content } = isObject(edu) ? edu : {}
    if (typeof type !== 'string' || !Object.hasOwn(parts.edus, type) || !isObject(content)) return
    await handle(origin, type, async () => (type === 'm.receipt' ? receipts.hold(origin, content) : content))
  }

  async function handle(origin: ServerName, type: string, due: () => Promise<JsonObject>): Promise<void> {
    try {
      await parts.edus[type]!(origin, await due())
    } catch (err) {
      if (!(err instanceof ProtocolError)) log.error({ err, origin, type }, 'an EDU could not be taken in')
      else if (err.status === 503) throw err
    }
  }

  async function take({ origin, txnId, pdus, edus }: ReceivedTransaction, hash: Buffer): Promise<string> {
    const known = await findTransaction(db, hash)
    if (known !== undefined) return known
    const byRoom = groupBy(pdus, ({ value }) =>
      isObject(value) && isRoomId(value.room_id) ? value.room_id : undefined,
    )
    byRoom.delete(undefined)
    const rooms = [...byRoom] as [RoomId, ReadJson[]][]
    const outcomes: Outcome[] = []
    const next = async (): Promise<void> => {
      for (let entry = rooms.shift(); entry; entry = rooms.shift())
        outcomes.push(...(await takeSafely(origin, ...entry)))
    }
    await Promise.all(Array.from({ length: Math.min(MAX_ROOMS_AT_ONCE, rooms.length) }, next))
    for (const edu of edus) await takeEdu(origin, edu)
    const answer = JSON.stringify({ pdus: resultsOf(outcomes) })
    await db.tx((tx) => insertTransaction(tx, { hash, answer, receivedAt: clock.now() }))
    log.debug({ origin, txnId, pdus: pdus.length, edus: edus.length }, 'a transaction was taken in')
    return answer
  }

  return {
    takeHeld: held.takeAll,
    receive(transaction) {
      const { origin, txnId, pdus, edus } = transaction
      if (pdus.length > MAX_PDUS_PER_TRANSACTION || edus.length > MAX_EDUS_PER_TRANSACTION) {
        const text = `A transaction holds at most ${MAX_PDUS_PER_TRANSACTION} PDUs and ${MAX_EDUS_PER_TRANSACTION} EDUs.`
        throw new ProtocolError('M_TOO_LARGE', text, { status: 400 })
      }
      const key = `${origin} ${txnId}`
      const already = running.get(key)
      if (already) return already
      const hash = createHash('sha256').update(key).digest()
      const taking = take(transaction, hash).finally(() => running.delete(key))
      running.set(key, taking)
      return taking
    },
  }
}

function isOfOurs({ localMembers }: Room, userId: JsonValue | undefined): boolean {
  return [...localMembers.values()].some((member) => member.userId === userId)
}

/** The id that an event of an old room version states itself; those of others are not told without knowing the version. */
function statedId(pdu: JsonValue): string | undefined {
  return isObject(pdu) && typeof pdu.event_id === 'string' ? pdu.event_id : undefined
}

function errorOf({ kind, reason }: Received): string | undefined {
  return kind === 'dropped' || kind === 'rejected' ? (reason ?? 'it was not accepted') : undefined
}

function resultsOf(outcomes: readonly Outcome[]): JsonObject {
  return Object.fromEntries(
    outcomes.flatMap(({ eventId, error }) =>
      eventId === undefined ? [] : [[eventId, error === undefined ? {} : { error }]],
    ),
  )
}
