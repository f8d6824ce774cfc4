import type { Reader, Tx } from '../db/db.ts'

// Table: rate_limit_override

export interface RateLimitOverrideRow {
  readonly user_nid: number
  readonly per_second: number
  readonly burst: number
}

export function listRateLimitOverrides(reader: Reader): Promise<RateLimitOverrideRow[]> {
  return reader.query<RateLimitOverrideRow>('SELECT user_nid, per_second, burst FROM rate_limit_override')
}

export async function setRateLimitOverride(tx: Tx, override: RateLimitOverrideRow): Promise<void> {
  await tx.query(
    `INSERT INTO rate_limit_override (user_nid, per_second, burst) VALUES ($1, $2, $3)
     ON CONFLICT (user_nid) DO UPDATE SET per_second = excluded.per_second, burst = excluded.burst`,
    [override.user_nid, override.per_second, override.burst],
  )
}

export async function deleteRateLimitOverride(tx: Tx, userNid: number): Promise<void> {
  await tx.query('DELETE FROM rate_limit_override WHERE user_nid = $1', [userNid])
}
