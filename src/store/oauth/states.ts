import type { Reader, Tx } from '../db/db.ts'
import { decodable } from '../db/decodable.ts'

// Table: oauth_state

export interface StateKey {
  /** What it is: `AuthorizationCode`, `Interaction`, ... */
  readonly model: string
  readonly idHash: Buffer
}

export interface StateRow {
  /** JSON */
  readonly payload: string
  readonly consumed_at: number | null
  readonly expires_at: number
}

const COLUMNS = 'payload, consumed_at, expires_at'

export async function putState(
  tx: Tx,
  { model, idHash }: StateKey,
  state: {
    readonly payload: string
    readonly grantHash: Buffer | undefined
    readonly userCodeHash: Buffer | undefined
    readonly expiresAt: number
  },
): Promise<void> {
  await tx.query(
    `INSERT INTO oauth_state (model, id_hash, payload, grant_hash, user_code_hash, expires_at) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (model, id_hash) DO UPDATE SET payload = excluded.payload, grant_hash = excluded.grant_hash,
       user_code_hash = excluded.user_code_hash, expires_at = excluded.expires_at`,
    [model, idHash, state.payload, state.grantHash ?? null, state.userCodeHash ?? null, state.expiresAt],
  )
}

export async function findState(reader: Reader, { model, idHash }: StateKey): Promise<StateRow | undefined> {
  const [row] = await reader.query<StateRow>(`SELECT ${COLUMNS} FROM oauth_state WHERE model = $1 AND id_hash = $2`, [
    model,
    idHash,
  ])
  return row
}

export async function findStateByUserCode(reader: Reader, userCodeHash: Buffer): Promise<StateRow | undefined> {
  const [row] = await reader.query<StateRow>(`SELECT ${COLUMNS} FROM oauth_state WHERE user_code_hash = $1`, [
    userCodeHash,
  ])
  return row
}

/** Marks it as used; false if it was used before, or does not exist. */
export async function consumeState(tx: Tx, { model, idHash }: StateKey, now: number): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE oauth_state SET consumed_at = $3 WHERE model = $1 AND id_hash = $2 AND consumed_at IS NULL RETURNING 1 AS one`,
    [model, idHash, now],
  )
  return rows.length === 1
}

/** Stores what a person decided, and forgets what they typed; false if somebody has decided before, or it does not exist any more. */
export async function decideState(
  tx: Tx,
  { model, idHash }: StateKey,
  state: { readonly payload: string; readonly grantHash: Buffer | undefined; readonly now: number },
): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE oauth_state SET payload = $3, grant_hash = $4, user_code_hash = NULL
     WHERE model = $1 AND id_hash = $2 AND user_code_hash IS NOT NULL AND expires_at > $5 RETURNING 1 AS one`,
    [model, idHash, state.payload, state.grantHash ?? null, state.now],
  )
  return rows.length === 1
}

/** Records that a device asks; false if it asked after `since` before. */
export async function recordPoll(
  tx: Tx,
  { model, idHash }: StateKey,
  { now, since }: { readonly now: number; readonly since: number },
): Promise<boolean> {
  const [row] = await tx.query<{ in_time: boolean }>(
    `WITH before AS (SELECT polled_at FROM oauth_state WHERE model = $1 AND id_hash = $2 FOR UPDATE)
     UPDATE oauth_state SET polled_at = $3 FROM before WHERE model = $1 AND id_hash = $2
     RETURNING coalesce(before.polled_at <= $4, true) AS in_time`,
    [model, idHash, now, since],
  )
  return row?.in_time ?? true
}

export async function deleteState(tx: Tx, { model, idHash }: StateKey): Promise<void> {
  await tx.query('DELETE FROM oauth_state WHERE model = $1 AND id_hash = $2', [model, idHash])
}

/** Removes all that belongs to a grant, except codes that were used: their next use must still be noticed. */
export async function deleteStatesOfGrant(tx: Tx, grantHash: Buffer): Promise<void> {
  await tx.query('DELETE FROM oauth_state WHERE grant_hash = $1 AND consumed_at IS NULL', [grantHash])
}

/** Removes what a user has granted and no client has used yet. Grants live for an hour, so there are few. */
export async function deleteGrantsOf(tx: Tx, userNid: number): Promise<void> {
  await tx.query(`DELETE FROM oauth_state WHERE model = 'Grant' AND ${decodable('payload')} ->> 'accountId' = $1`, [
    String(userNid),
  ])
}

/** How many there are of one kind; at most so many are counted. */
export async function countStates(reader: Reader, model: string, atMost: number): Promise<number> {
  const [row] = await reader.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM (SELECT 1 FROM oauth_state WHERE model = $1 LIMIT $2) s',
    [model, atMost],
  )
  return row!.count
}

/** Removes all of one kind but so many that expire last. */
export async function deleteOldestStates(tx: Tx, model: string, kept: number): Promise<void> {
  await tx.query(
    `DELETE FROM oauth_state WHERE model = $1 AND id_hash IN (
       SELECT id_hash FROM oauth_state WHERE model = $1 ORDER BY expires_at DESC OFFSET $2)`,
    [model, kept],
  )
}

/** Gives how many were removed. */
export async function forgetStates(tx: Tx, now: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM oauth_state WHERE (model, id_hash) IN (
       SELECT model, id_hash FROM oauth_state WHERE expires_at <= $1 LIMIT $2) RETURNING 1 AS one`,
    [now, atMost],
  )
  return rows.length
}

/** Locks it until the end of the transaction; false if there is none. */
export async function lockState(tx: Tx, { model, idHash }: StateKey): Promise<boolean> {
  const rows = await tx.query('SELECT 1 AS one FROM oauth_state WHERE model = $1 AND id_hash = $2 FOR UPDATE', [
    model,
    idHash,
  ])
  return rows.length === 1
}
