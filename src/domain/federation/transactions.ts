import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import { groupBy } from '../../core/group-by.ts'
import { isRoomId, type RoomId, type ServerName } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue, type ReadJson } from '../../core/json.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import { findTransaction, insertTransaction } from '../../store/federation/federation-transactions.ts'
import type { Clock } from '../clock.ts'
import type { MissedDeviceLists } from '../keys/missed-device-lists.ts'
import { MAX_EDUS_PER_TRANSACTION, MAX_PDUS_PER_TRANSACTION, MAX_ROOMS_AT_ONCE } from '../limits.ts'
import type { FederationMetrics } from '../measures/work-metrics.ts'
import type { PartialState } from '../rooms/room/partial-state.ts'
import type { PartialStateRooms } from '../rooms/room/partial-state-rooms.ts'
import type { Outcome } from './held-events.ts'
import { createTransactionEdus, type TransactionEduParts } from './transaction-edus.ts'
import { createTransactionPdus, type TransactionPduParts } from './transaction-pdus.ts'

export interface ReceivedTransaction {
  readonly origin: ServerName
  readonly txnId: string
  readonly pdus: readonly ReadJson[]
  readonly edus: readonly JsonValue[]
}

/** Processes the transactions of other servers (server-server API, "Transactions"). */
export interface Transactions {
  /**
   * Returns the body of the answer: an entry for each event whose id is known, with an error if it was not accepted. A repeated
   * transaction gets the same answer, even after a restart, and is not processed again.
   *
   * @throws ProtocolError `M_TOO_LARGE`
   */
  receive(transaction: ReceivedTransaction): Promise<string>
  /** Processes the events and receipts that waited for a room's resync, oldest first, and stops holding. */
  takeHeld(partialState: PartialState): Promise<void>
}

export interface TransactionParts extends TransactionPduParts, TransactionEduParts {
  readonly clock: Clock
  readonly partialStateRooms: Pick<PartialStateRooms, 'end' | 'all'>
  readonly missedDeviceLists: Pick<MissedDeviceLists, 'refused'>
  readonly log: Logger
  readonly metrics: Pick<FederationMetrics, 'received'>
}

export function createTransactions(parts: TransactionParts): Transactions {
  const { db, clock, log, metrics } = parts
  const turns = createKeyedQueue<number>()
  const transactionEdus = createTransactionEdus(parts, turns)
  const transactionPdus = createTransactionPdus(parts, { turns, receipts: transactionEdus.heldReceipts })
  const running = new Map<string, Promise<string>>()

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
        outcomes.push(...(await transactionPdus.take(origin, ...entry)))
    }
    await Promise.all(Array.from({ length: Math.min(MAX_ROOMS_AT_ONCE, rooms.length) }, next))
    if (parts.gate.shuns(origin) === undefined) for (const edu of edus) await transactionEdus.take(origin, edu)
    else await parts.missedDeviceLists.refused(origin, edus)
    const answer = JSON.stringify({ pdus: resultsOf(outcomes) })
    await db.tx((tx) => insertTransaction(tx, { hash, answer, receivedAt: clock.now() }))
    metrics.received(pdus.length, edus.length)
    log.debug({ origin, txnId, pdus: pdus.length, edus: edus.length }, 'a transaction was taken in')
    return answer
  }

  return {
    takeHeld: transactionPdus.takeHeld,
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

function resultsOf(outcomes: readonly Outcome[]): JsonObject {
  return Object.fromEntries(
    outcomes.flatMap(({ eventId, error }) =>
      eventId === undefined ? [] : [[eventId, error === undefined ? {} : { error }]],
    ),
  )
}
