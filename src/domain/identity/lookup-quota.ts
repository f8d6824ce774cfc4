import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { Database } from '../../store/db/db.ts'
import { spendLookups } from '../../store/identity/lookup-quota.ts'
import type { Clock } from '../clock.ts'
import { LOOKUP_QUOTA_MS } from '../limits.ts'

/** How many addresses a user, or a network address without a user, may look up in a day, by any operation that reveals bindings. */
export interface LookupQuota {
  /** @throws ProtocolError `M_LIMIT_EXCEEDED`; then nothing is counted */
  spend(who: string, count: number): Promise<void>
}

export function createLookupQuota(deps: {
  readonly config: Pick<Config, 'identity'>
  readonly db: Database
  readonly clock: Clock
}): LookupQuota {
  const { db, clock } = deps
  // Lookups do not wait for the disk. After a crash the counts of the last second may be lost.
  const writer = db.dedicated((client) => client.query('SET synchronous_commit = off').then(() => {}))
  const { addresses_per_day: quota } = deps.config.identity.lookup

  return {
    async spend(who, count) {
      if (quota === 0 || count === 0) return
      const now = clock.now()
      const since = await spendLookups(writer, { who, count, now, dayMs: LOOKUP_QUOTA_MS }, quota)
      if (since === undefined) return
      throw new ProtocolError('M_LIMIT_EXCEEDED', `At most ${quota} addresses can be looked up in a day.`, {
        extra: { retry_after_ms: Math.max(1, since + LOOKUP_QUOTA_MS - now) },
      })
    },
  }
}
