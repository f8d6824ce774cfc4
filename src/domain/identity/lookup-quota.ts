import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { Database } from '../../store/db/db.ts'
import { spendLookups } from '../../store/identity/lookup-quota.ts'
import type { Clock } from '../clock.ts'
import { LOOKUP_QUOTA_MS } from '../limits.ts'

/** How many addresses a user, or a network address without one, may ask about in a day, by whichever operation tells who has them. */
export interface LookupQuota {
  /** @throws ProtocolError `M_LIMIT_EXCEEDED`, and counts nothing */
  spend(who: string, count: number): Promise<void>
}

export function createLookupQuota(deps: {
  readonly config: Pick<Config, 'identity'>
  readonly db: Database
  readonly clock: Clock
}): LookupQuota {
  const { db, clock } = deps
  // Nobody waits for the disk: after a crash somebody may ask again for what they asked for within the second before.
  const writer = db.dedicated((client) =>
    client.query('SET synchronous_commit = off; SET enable_seqscan = off').then(() => {}),
  )
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
