import { countActiveUsers } from '../../store/accounts/user-survey.ts'
import type { Database } from '../../store/db/db.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Clock } from '../clock.ts'

/** How this server is used. */
export interface Statistics {
  /** The people who were here within the last thirty days, to a day. */
  monthlyActiveUsers(): Promise<number>
  /** The same as it was counted last, without waiting; NaN before the first time. Looked at, it is counted again every few minutes. */
  latestMonthlyActiveUsers(): number
}

const MONTH_MS = 30 * 24 * 3_600_000
const COUNTED_EVERY_MS = 5 * 60_000

export function createStatistics(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly sessions: Pick<Sessions, 'flush'>
}): Statistics {
  const { db, clock, sessions } = deps
  let latest = Number.NaN
  let countedAt = Number.NEGATIVE_INFINITY

  async function count(): Promise<number> {
    countedAt = clock.now()
    latest = await countActiveUsers({ query: db.scan }, countedAt - MONTH_MS)
    return latest
  }

  return {
    async monthlyActiveUsers() {
      // Who was only just here counts too; what cannot be written now is written later.
      await sessions.flush().catch(() => {})
      return count()
    },
    latestMonthlyActiveUsers() {
      // A database that is away leaves the figure as it was.
      if (clock.now() - countedAt > COUNTED_EVERY_MS) void count().catch(() => {})
      return latest
    },
  }
}
