import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: identity_pepper, identity_lookup_hash, identity_lookup_version, identity_lookup_change

/** Any constant does, one for all processes. */
const PEPPER_LOCK = 0x1d4

/** The hash of an address, where `address`, `medium` and `pepper` are in scope. */
export const HASH = `sha256(convert_to(address || ' ' || medium || ' ' || pepper, 'UTF8'))`

/**
 * For changes of bindings: until the end of the transaction no pepper is added or removed. So if a rotation begins meanwhile, either it
 * finds the new binding, or the binding is hashed with the next pepper too.
 */
export async function lockPeppersAsTheyAre(tx: Tx): Promise<void> {
  await tx.query('SELECT 1 AS one FROM pg_advisory_xact_lock_shared($1)', [PEPPER_LOCK])
}

/** For changes of peppers: until the end of the transaction nobody else changes peppers or bindings. */
export async function lockPeppers(tx: Tx): Promise<void> {
  await tx.query('SELECT 1 AS one FROM pg_advisory_xact_lock($1)', [PEPPER_LOCK])
}

interface Address {
  readonly medium: string
  readonly address: string
}

/** The hashes of the address `$1`, `$2` under the current and the next pepper. */
const HASHED = `hashed AS (
  SELECT pepper_nid, ${HASH} AS hash
  FROM identity_pepper, (SELECT $1::text AS address, $2::text AS medium) bound WHERE standing <> 'old')`

/** Records the new user of hashes. Versions are in commit order, because the row stays locked until the commit. */
const noted = (user: string): string => `counted AS (
    UPDATE identity_lookup_version SET version = version + 1 RETURNING version)
  INSERT INTO identity_lookup_change (version, pepper_nid, hash, user_id)
  SELECT version, pepper_nid, hash, ${user} FROM counted, hashed`

/** Writes a binding's hash under the current and the next pepper. Needs {@link lockPeppersAsTheyAre}. */
export async function hashBinding(tx: Tx, { medium, address, user_id }: Address & { user_id: UserId }): Promise<void> {
  await tx.query(
    `WITH ${HASHED}, written AS (
       INSERT INTO identity_lookup_hash (pepper_nid, hash, user_id) SELECT pepper_nid, hash, $3 FROM hashed
       ON CONFLICT (pepper_nid, hash) DO UPDATE SET user_id = excluded.user_id),
     ${noted('$3')}`,
    [address, medium, user_id],
  )
}

/** Removes the hashes of an address under every pepper. Needs {@link lockPeppersAsTheyAre}. */
export async function unhashBinding(tx: Tx, { medium, address }: Address): Promise<void> {
  await tx.query(
    `WITH ${HASHED}, removed AS (
       DELETE FROM identity_lookup_hash WHERE (pepper_nid, hash) IN (
         SELECT pepper_nid, ${HASH}
         FROM identity_pepper, (SELECT $1::text AS address, $2::text AS medium) bound)),
     ${noted('NULL')}`,
    [address, medium],
  )
}

/**
 * Removes the user from the recorded changes of an address that is no longer bound. Readers of the changes get the same result. Needs
 * the lock of the address.
 */
export async function unnameChanges(tx: Tx, { medium, address }: Address): Promise<void> {
  await tx.query(
    `WITH ${HASHED}
     UPDATE identity_lookup_change c SET user_id = NULL FROM hashed h WHERE c.pepper_nid = h.pepper_nid AND c.hash = h.hash`,
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

/** When the current pepper came into use, and the last binding that is hashed with the next one; null without a rotation. */
export async function findRotation(
  reader: Reader,
): Promise<{ readonly since: number; readonly hashed_to: number | null; readonly last: number | null } | undefined> {
  const [row] = await reader.query<{ since: number; hashed_to: number | null; last: number | null }>(
    `SELECT p.since, n.hashed_to, (SELECT max(binding_nid) FROM identity_binding) AS last
     FROM identity_pepper p LEFT JOIN identity_pepper n ON n.standing = 'next' WHERE p.standing = 'current'`,
  )
  return row
}

/** The result of a lookup under the caller's pepper, if that is the current one. */
export interface HashedLookup {
  readonly pepper: string
  /** Users by the place of their hash, from 0. */
  readonly users: Readonly<Record<string, UserId>>
}

/**
 * Looks hashes up, and returns the current pepper. It is a single statement, so that no rotation can come between the pepper and its
 * hashes. The hashes are sent as one value and the users come back as one: a thousand values would cost more than the search.
 *
 * @param hashes of 32 bytes each, end to end
 */
export async function findByHashes(reader: Reader, pepper: string, hashes: Buffer): Promise<HashedLookup> {
  // LIMIT keeps the planner from joining the whole table with the hashes that are looked up.
  const [row] = await reader.query<{ pepper: string; users: string | null }>(
    `SELECT p.pepper, found.users FROM identity_pepper p
     LEFT JOIN LATERAL (
       SELECT json_object_agg(n, bound.user_id)::text AS users
       FROM generate_series(0, length($2::bytea) / 32 - 1) n
       CROSS JOIN LATERAL (
         SELECT h.user_id FROM identity_lookup_hash h
         WHERE h.pepper_nid = p.pepper_nid AND h.hash = substring($2 FROM n * 32 + 1 FOR 32) LIMIT 1) bound
       WHERE p.pepper = $1) found ON true
     WHERE p.standing = 'current'`,
    [pepper, hashes],
  )
  if (row === undefined) throw new Error('there is no current pepper')
  return { pepper: row.pepper, users: row.users === null ? {} : JSON.parse(row.users) }
}

/** The next pepper of the current rotation; begins a rotation if there is none. Needs {@link lockPeppers}. */
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

/** The next pepper of a rotation that has not switched yet. */
export async function findNextPepper(reader: Reader): Promise<number | undefined> {
  const [row] = await reader.query<{ pepper_nid: number }>(
    `SELECT pepper_nid FROM identity_pepper WHERE standing = 'next'`,
  )
  return row?.pepper_nid
}

/**
 * Hashes at most so many more bindings with this pepper, oldest first. Gives how many. Needs {@link lockPeppers}, because otherwise a
 * binding that changes meanwhile would get the hash of its old value.
 */
export async function hashMoreBindings(tx: Tx, pepperNid: number, atMost: number): Promise<number> {
  await workInBackground(tx)
  const [next] = await tx.query<{ pepper: string; hashed_to: number }>(
    `SELECT pepper, hashed_to FROM identity_pepper WHERE pepper_nid = $1 AND standing = 'next'`,
    [pepperNid],
  )
  if (next === undefined) return 0
  const [batch] = await tx.query<{ hashed: number; last: number | null }>(
    `WITH batch AS MATERIALIZED (
       SELECT binding_nid, medium, address, user_id, $2::text AS pepper FROM identity_binding
       WHERE binding_nid > $3 ORDER BY binding_nid LIMIT $4),
     written AS (
       INSERT INTO identity_lookup_hash (pepper_nid, hash, user_id)
       SELECT $1, ${HASH} AS hash, user_id FROM batch ORDER BY hash
       ON CONFLICT (pepper_nid, hash) DO NOTHING)
     SELECT count(*) AS hashed, max(binding_nid) AS last FROM batch`,
    [pepperNid, next.pepper, next.hashed_to, atMost],
  )
  if (batch === undefined || batch.last === null) return 0
  await tx.query('UPDATE identity_pepper SET hashed_to = $2 WHERE pepper_nid = $1', [pepperNid, batch.last])
  return batch.hashed
}

/** Makes the next pepper the current one, once all bindings are hashed with it. Needs {@link lockPeppers}. */
export async function switchPeppers(tx: Tx, pepperNid: number, now: number): Promise<void> {
  // Another process that worked on the same rotation may have been faster.
  if ((await findNextPepper(tx)) !== pepperNid) return
  await tx.query(`UPDATE identity_pepper SET standing = 'old', since = $1 WHERE standing = 'current'`, [now])
  await tx.query(`UPDATE identity_pepper SET standing = 'current', since = $2 WHERE pepper_nid = $1`, [pepperNid, now])
}

/** How many blocks of hashes there are. */
export async function countHashBlocks(reader: Reader): Promise<number> {
  const [row] = await reader.query<{ blocks: number }>(
    `SELECT pg_relation_size('identity_lookup_hash') / current_setting('block_size')::bigint AS blocks`,
  )
  return row?.blocks ?? 0
}

/** Removes the hashes of old peppers from some blocks. It goes by blocks, because by index every hash would be on a different page. */
export async function deleteOldHashes(tx: Tx, firstBlock: number, blocks: number): Promise<void> {
  await workInBackground(tx)
  await tx.query(
    `DELETE FROM identity_lookup_hash WHERE ctid >= format('(%s,0)', $1::bigint)::tid AND ctid < format('(%s,0)', $2::bigint)::tid
       AND pepper_nid = ANY(ARRAY(SELECT pepper_nid FROM identity_pepper WHERE standing = 'old'))`,
    [firstBlock, firstBlock + blocks],
  )
}

/**
 * Settings for the steps of a rotation, and for reading all bindings. A statement is planned on first use, perhaps when these tables were
 * empty. And a step need not be on the disk before a later commit, at the latest that of the switch.
 */
export async function workInBackground(tx: Tx): Promise<void> {
  await tx.query(`SELECT set_config('enable_seqscan', 'off', true), set_config('synchronous_commit', 'off', true)`)
}

/** Whether a rotation left peppers behind. */
export async function hasOldPeppers(reader: Reader): Promise<boolean> {
  return (await reader.query(`SELECT 1 AS one FROM identity_pepper WHERE standing = 'old'`)).length > 0
}

/** Removes old peppers whose hashes are removed; no new hash is written for an old pepper. Needs {@link lockPeppers}. */
export async function deleteOldPeppers(tx: Tx): Promise<void> {
  await tx.query(`DELETE FROM identity_pepper WHERE standing = 'old'`)
}
