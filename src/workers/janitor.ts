import type { Logger } from 'pino'
import type { Clock } from '../domain/clock.ts'
import { MAX_UNDONE, UNDONE_KEPT_MS } from '../domain/limits/backups.ts'
import { CLAIMED_KEYS_KEPT_MS, ENDED_REFRESH_TOKENS_KEPT_MS, UIA_SESSION_MS } from '../domain/limits.ts'
import { forgetLoginTokens } from '../store/accounts/login-tokens.ts'
import { forgetOpenIdTokens } from '../store/accounts/openid-tokens.ts'
import { forgetFlows } from '../store/accounts/sso-flows.ts'
import { forgetRefreshTokens } from '../store/accounts/tokens.ts'
import { forgetUiaSessions } from '../store/accounts/uia-sessions.ts'
import { forgetUndone } from '../store/backup/undone.ts'
import type { Database, Tx } from '../store/db/db.ts'
import { forgetTransactionIds } from '../store/events/transaction-ids.ts'
import { forgetClaimedKeys } from '../store/keys/one-time-keys.ts'
import { forgetToDeviceCalls } from '../store/keys/to-device.ts'
import { createStateCollector } from './state-collector.ts'

/** Removes expired rows, a few at a time. */
export interface Janitor {
  /** One round: removes everything that is due now. Gives the number of rows. */
  tidy(): Promise<number>
  close(): Promise<void>
}

/** Removes at most so many rows that are due at a moment, and gives how many. */
export type Chore = (tx: Tx, now: number, atMost: number) => Promise<number>

const EVERY_MS = 3_600_000
/** A client may repeat a request for a day; a few hours more cost little. */
const TRANSACTION_IDS_KEPT_MS = 30 * 3_600_000
const ROWS_AT_ONCE = 2_000

const CHORES: readonly Chore[] = [
  (tx, now, atMost) => forgetTransactionIds(tx, now - TRANSACTION_IDS_KEPT_MS, atMost),
  (tx, now, atMost) => forgetToDeviceCalls(tx, now - TRANSACTION_IDS_KEPT_MS, atMost),
  forgetOpenIdTokens,
  forgetLoginTokens,
  forgetFlows,
  (tx, now, atMost) => forgetClaimedKeys(tx, now - CLAIMED_KEYS_KEPT_MS, atMost),
  (tx, now, atMost) => forgetRefreshTokens(tx, now - ENDED_REFRESH_TOKENS_KEPT_MS, atMost),
  (tx, now, atMost) => forgetUiaSessions(tx, now - UIA_SESSION_MS, atMost),
  (tx, now, atMost) => forgetUndone(tx, now - UNDONE_KEPT_MS, MAX_UNDONE, atMost),
]

export function startJanitor(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  /** Chores of other parts of the server. */
  readonly chores?: readonly Chore[]
}): Janitor {
  const { db, clock, log } = deps
  const chores = [...CHORES, ...(deps.chores ?? [])]
  let closed = false
  let running: Promise<unknown> = Promise.resolve()
  const states = createStateCollector(db)

  async function tidy(): Promise<number> {
    const now = clock.now()
    let total = 0
    for (const chore of chores) {
      for (let removed = ROWS_AT_ONCE; removed === ROWS_AT_ONCE && !closed; total += removed) {
        removed = await db.tx((tx) => chore(tx, now, ROWS_AT_ONCE))
      }
    }
    return total + (await states.round(() => closed))
  }

  const timer = setInterval(() => {
    // After a failure the next round, in an hour, tries again.
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
