import {
  deleteRateLimitOverride,
  listRateLimitOverrides,
  setRateLimitOverride,
} from '../store/accounts/rate-limit-overrides.ts'
import type { Database } from '../store/db/db.ts'
import type { Clock } from './clock.ts'

/** A user's own limit of events; `per_second` 0 lifts every limit. */
export interface RateLimitOverride {
  readonly per_second: number
  readonly burst: number
}

/** The users who have limits of their own. They are in memory, so that no request has to query them. */
export interface RateLimitOverrides {
  /** Undefined for a user with the configured limits. A change by another process takes effect within half a minute. */
  get(userNid: number): RateLimitOverride | undefined
  set(userNid: number, override: RateLimitOverride): Promise<void>
  remove(userNid: number): Promise<void>
}

const READ_EVERY_MS = 30_000

/** Loads the overrides, then resolves. */
export async function openRateLimitOverrides(deps: {
  readonly db: Database
  readonly clock: Clock
}): Promise<RateLimitOverrides> {
  const { db, clock } = deps
  let known = new Map<number, RateLimitOverride>()
  let readAt = clock.now()

  async function read(): Promise<void> {
    readAt = clock.now()
    const rows = await listRateLimitOverrides(db)
    known = new Map(rows.map(({ user_nid, per_second, burst }) => [user_nid, { per_second, burst }]))
  }

  await read()
  return {
    get(userNid) {
      // If the read fails, the overrides stay as they were until the next one.
      if (clock.now() - readAt >= READ_EVERY_MS) void read().catch(() => {})
      return known.get(userNid)
    },
    async set(userNid, { per_second, burst }) {
      await db.tx((tx) => setRateLimitOverride(tx, { user_nid: userNid, per_second, burst }))
      await read()
    },
    async remove(userNid) {
      await db.tx((tx) => deleteRateLimitOverride(tx, userNid))
      await read()
    },
  }
}
