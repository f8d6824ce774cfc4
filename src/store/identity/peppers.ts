import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db.ts'

// Tables: identity_pepper, identity_lookup_hash

/** Any constant does, one for all processes. */
const PEPPER_LOCK = 0x1d4

/** The hash of an address, where `address`, `medium` and `pepper` are in scope. */
const HASH = `sha256(convert_to(address || ' ' || medium || ' ' || pepper, 'UTF8'))`

/**
 * For whoever changes bindings: until the end of the transaction no pepper is added or removed. So a binding that is made while a
 * rotation begins is either there when the rotation looks for bindings to hash, or has seen the next pepper.
 */
export async function lockPeppersAsTheyAre(tx: Tx): Promise<void> {
  await tx.query('SELECT 1 AS one FROM pg_advisory_xact_lock_shared($1)', [PEPPER_LOCK])
}

/** For whoever changes peppers: until the end of the transaction nobody else does, and no binding is changed. */
export async function lockPeppers(tx: Tx): Promise<void> {
  await tx.query('SELECT 1 AS one FROM pg_advisory_xact_lock($1)', [PEPPER_LOCK])
}

interface Address {
  readonly medium: string
  readonly address: string
}

/** Writes a binding's hash under the current and the next pepper. */
export async function hashBinding(tx: Tx, bindingNid: number, { medium, address }: Address): Promise<void> {
  await tx.query(
    `INSERT INTO identity_lookup_hash (pepper_nid, hash, binding_nid)
     SELECT pepper_nid, ${HASH}, $3
     FROM identity_pepper, (SELECT $1::text AS address, $2::text AS medium) bound WHERE standing <> 'old'
     ON CONFLICT (pepper_nid, hash) DO UPDATE SET binding_nid = excluded.binding_nid`,
    [address, medium, bindingNid],
  )
}

/** Removes the hashes of an address under every pepper. */
export async function unhashBinding(tx: Tx, { medium, address }: Address): Promise<void> {
  await tx.query(
    `DELETE FROM identity_lookup_hash WHERE (pepper_nid, hash) IN (
       SELECT pepper_nid, ${HASH}
       FROM identity_pepper, (SELECT $1::text AS address, $2::text AS medium) bound)`,
    [address, medium],
  )
}

export async function findPepper(reader: Reader): Promise<{ readonly pepper: string; readonly since: number }> {
  const [row] = await reader.query<{ pepper: string; since: number }>(
    `SELECT pepper, since FROM identity_pepper WHERE standing = 'current'`,
  )
  if (row === undefined) throw new Error('there is no current pepper')
  return row
}

/** What was found under the pepper that the asker used, if that is the current one. */
export interface HashedLookup {
  readonly pepper: string
  readonly found: readonly { readonly hash: Buffer; readonly userId: UserId }[]
}

/**
 * Looks hashes up, and says which pepper is the current one. A single statement, so that one moment is looked at: no rotation can
 * come between the pepper and its hashes.
 */
export async function findByHashes(reader: Reader, pepper: string, hashes: readonly Buffer[]): Promise<HashedLookup> {
  const rows = await reader.query<{ pepper: string; hash: Buffer | null; user_id: UserId | null }>(
    `SELECT p.pepper, found.hash, found.user_id FROM identity_pepper p
     LEFT JOIN LATERAL (
       SELECT h.hash, b.user_id FROM identity_lookup_hash h JOIN identity_binding b USING (binding_nid)
       WHERE p.pepper = $1 AND h.pepper_nid = p.pepper_nid AND h.hash = ANY($2::bytea[])) found ON true
     WHERE p.standing = 'current'`,
    [pepper, hashes],
  )
  const [first] = rows
  if (first === undefined) throw new Error('there is no current pepper')
  return {
    pepper: first.pepper,
    found: rows.flatMap(({ hash, user_id: userId }) => (hash === null || userId === null ? [] : [{ hash, userId }])),
  }
}

/** The pepper that a rotation is about, a new one if none was begun. Needs {@link lockPeppers}. */
export async function ensureNextPepper(tx: Tx, pepper: string, now: number): Promise<number> {
  await tx.query(
    `INSERT INTO identity_pepper (pepper, standing, since) VALUES ($1, 'next', $2)
     ON CONFLICT (standing) WHERE standing <> 'old' DO NOTHING`,
    [pepper, now],
  )
  const next = await findNextPepper(tx)
  if (next === undefined) throw new Error('a pepper was not written')
  return next
}

/** The pepper of a rotation that was begun and has not switched yet. */
export async function findNextPepper(reader: Reader): Promise<number | undefined> {
  const [row] = await reader.query<{ pepper_nid: number }>(
    `SELECT pepper_nid FROM identity_pepper WHERE standing = 'next'`,
  )
  return row?.pepper_nid
}

/** Hashes at most so many more bindings with this pepper, in the order in which they were made. Gives how many. */
export async function hashMoreBindings(tx: Tx, pepperNid: number, atMost: number): Promise<number> {
  await useIndexes(tx)
  const [next] = await tx.query<{ hashed_to: number }>(
    `SELECT hashed_to FROM identity_pepper WHERE pepper_nid = $1 AND standing = 'next' FOR UPDATE`,
    [pepperNid],
  )
  if (next === undefined) return 0
  const [batch] = await tx.query<{ hashed: number; last: number | null }>(
    `WITH batch AS MATERIALIZED (
       SELECT binding_nid, medium, address FROM identity_binding
       WHERE binding_nid > $2 ORDER BY binding_nid LIMIT $3),
     written AS (
       INSERT INTO identity_lookup_hash (pepper_nid, hash, binding_nid)
       SELECT pepper_nid, ${HASH}, binding_nid FROM batch, identity_pepper WHERE pepper_nid = $1
       ON CONFLICT (pepper_nid, hash) DO NOTHING)
     SELECT count(*) AS hashed, max(binding_nid) AS last FROM batch`,
    [pepperNid, next.hashed_to, atMost],
  )
  if (batch === undefined || batch.last === null) return 0
  await tx.query('UPDATE identity_pepper SET hashed_to = $2 WHERE pepper_nid = $1', [pepperNid, batch.last])
  return batch.hashed
}

/** This next pepper, with which all bindings are hashed, becomes the current one. Needs {@link lockPeppers}. */
export async function switchPeppers(tx: Tx, pepperNid: number, now: number): Promise<void> {
  // Whoever helped with the same rotation may have been faster.
  if ((await findNextPepper(tx)) !== pepperNid) return
  await tx.query(`UPDATE identity_pepper SET standing = 'old', since = $1 WHERE standing = 'current'`, [now])
  await tx.query(`UPDATE identity_pepper SET standing = 'current', since = $2 WHERE pepper_nid = $1`, [pepperNid, now])
}

/** Removes at most so many hashes of old peppers, and gives how many. */
export async function deleteOldHashes(tx: Tx, atMost: number): Promise<number> {
  await useIndexes(tx)
  const rows = await tx.query(
    `DELETE FROM identity_lookup_hash WHERE ctid = ANY(ARRAY(
       SELECT h.ctid FROM identity_lookup_hash h
       WHERE h.pepper_nid = (SELECT min(pepper_nid) FROM identity_pepper WHERE standing = 'old') LIMIT $1))
     RETURNING 1 AS one`,
    [atMost],
  )
  return rows.length
}

/** The plan of a statement is made when it is first used, and these tables may have been empty then. */
async function useIndexes(tx: Tx): Promise<void> {
  await tx.query(`SELECT set_config('enable_seqscan', 'off', true) AS off`)
}

/** Removes the old peppers themselves. Needs {@link lockPeppers}, so that nobody writes one more hash with them. */
export async function deleteOldPeppers(tx: Tx): Promise<void> {
  await tx.query(
    `DELETE FROM identity_lookup_hash WHERE pepper_nid = ANY(ARRAY(SELECT pepper_nid FROM identity_pepper WHERE standing = 'old'))`,
  )
  await tx.query(`DELETE FROM identity_pepper WHERE standing = 'old'`)
}
