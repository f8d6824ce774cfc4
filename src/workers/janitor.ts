import type { Logger } from 'pino'
import type { Clock } from '../domain/clock.ts'
import type { Database } from '../store/db.ts'
import { forgetTransactionIds } from '../store/transaction-ids.ts'
import { createStateCollector } from './state-collector.ts'

/** Removes what nobody will ask for again, a little at a time. */
export interface Janitor {
  /** One round: everything that is due now. Gives how many rows it removed. */
  tidy(): Promise<number>
  close(): Promise<void>
}

const EVERY_MS = 3_600_000
/** A client may repeat a request for a day; a few hours more cost little. */
const TRANSACTION_IDS_KEPT_MS = 30 * 3_600_000
const ROWS_AT_ONCE = 2_000

export function startJanitor({ db, clock, log }: { db: Database; clock: Clock; log: Logger }): Janitor {
  let closed = false
  let running: Promise<unknown> = Promise.resolve()
  const states = createStateCollector(db)

  async function tidy(): Promise<number> {
    const before = clock.now() - TRANSACTION_IDS_KEPT_MS
    let total = 0
    for (let removed = ROWS_AT_ONCE; removed === ROWS_AT_ONCE && !closed; total += removed) {
      removed = await db.tx((tx) => forgetTransactionIds(tx, before, ROWS_AT_ONCE))
    }
    return total + (await states.round(() => closed))
  }

  const timer = setInterval(() => {
    // What fails now is due again in an hour.
    running = tidy().catch((error) => log.warn({ err: error }, 'the hourly tidying failed'))
  }, EVERY_MS).unref()

  return {
    tidy,
    async close() {
      closed = true
      clearInterval(timer)
      await running
    },
  }
}
