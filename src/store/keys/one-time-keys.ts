import type { Reader, Tx } from '../db/db.ts'

// Tables: one_time_key, fallback_key

export interface NamedKey {
  readonly algorithm: string
  readonly keyId: string
  readonly json: string
}

interface Owner {
  readonly userNid: number
  readonly deviceId: string
}

const keyColumns = (keys: readonly NamedKey[]) => [
  keys.map((key) => key.algorithm),
  keys.map((key) => key.keyId),
  keys.map((key) => key.json),
]

interface KeyName {
  readonly algorithm: string
  readonly key_id: string
}

/** A key whose id is stored already with other bytes and is not claimed. */
export async function findClash(
  reader: Reader,
  { userNid, deviceId }: Owner,
  keys: readonly NamedKey[],
): Promise<KeyName | undefined> {
  const [clash] = await reader.query<KeyName>(
    `SELECT algorithm, key_id FROM one_time_key k
     JOIN unnest($3::text[], $4::text[], $5::text[]) AS s (algorithm, key_id, json) USING (algorithm, key_id)
     WHERE user_nid = $1 AND device_id = $2 AND claimed_at IS NULL AND k.json <> s.json LIMIT 1`,
    [userNid, deviceId, ...keyColumns(keys)],
  )
  return clash
}

/** Stores one-time keys that do not clash. A claimed key stays claimed, unless its bytes changed. */
export async function storeOneTimeKeys(tx: Tx, { userNid, deviceId }: Owner, keys: readonly NamedKey[]): Promise<void> {
  await tx.query(
    `INSERT INTO one_time_key (user_nid, device_id, algorithm, key_id, json)
     SELECT user_nid, device_id, algorithm, key_id, json FROM device
     CROSS JOIN unnest($3::text[], $4::text[], $5::text[]) AS s (algorithm, key_id, json)
     WHERE user_nid = $1 AND device_id = $2
     ON CONFLICT (user_nid, device_id, algorithm, key_id)
     DO UPDATE SET json = EXCLUDED.json, claimed_at = NULL, key_nid = DEFAULT
     WHERE one_time_key.claimed_at IS NOT NULL AND one_time_key.json <> EXCLUDED.json`,
    [userNid, deviceId, ...keyColumns(keys)],
  )
}

/** Stores fallback keys in place of older ones. An identical one stays unchanged, used or not. */
export async function storeFallbackKeys(
  tx: Tx,
  { userNid, deviceId }: Owner,
  keys: readonly NamedKey[],
): Promise<void> {
  await tx.query(
    `INSERT INTO fallback_key (user_nid, device_id, algorithm, key_id, json, is_used)
     SELECT user_nid, device_id, algorithm, key_id, json, false FROM device
     CROSS JOIN unnest($3::text[], $4::text[], $5::text[]) AS s (algorithm, key_id, json)
     WHERE user_nid = $1 AND device_id = $2
     ON CONFLICT (user_nid, device_id, algorithm)
     DO UPDATE SET key_id = EXCLUDED.key_id, json = EXCLUDED.json, is_used = false
     WHERE (fallback_key.key_id, fallback_key.json) <> (EXCLUDED.key_id, EXCLUDED.json)`,
    [userNid, deviceId, ...keyColumns(keys)],
  )
}

export interface KeyCountRow {
  readonly user_nid: number
  readonly device_id: string
  readonly algorithm: string
  /** One-time keys that are left; null where the row is about an unused fallback key. */
  readonly left_over: number | null
}

/** What is left of the one-time keys of devices, and which fallback keys are unused. */
export function countKeys(
  reader: Reader,
  userNids: readonly number[],
  deviceIds: readonly string[],
): Promise<KeyCountRow[]> {
  return reader.query<KeyCountRow>(
    `WITH asked AS (SELECT * FROM unnest($1::bigint[], $2::text[]) AS a (user_nid, device_id))
     SELECT user_nid, device_id, algorithm, count(*) AS left_over FROM one_time_key JOIN asked USING (user_nid, device_id)
     WHERE claimed_at IS NULL GROUP BY user_nid, device_id, algorithm
     UNION ALL
     SELECT user_nid, device_id, algorithm, NULL::bigint FROM fallback_key JOIN asked USING (user_nid, device_id) WHERE NOT is_used`,
    [userNids, deviceIds],
  )
}

/** A device and the algorithm of the wanted key. */
export interface KeyWish {
  readonly userNid: number
  readonly deviceId: string
  readonly algorithm: string
}

export interface TakenKey {
  readonly user_nid: number
  readonly device_id: string
  readonly algorithm: string
  readonly key_id: string
  readonly json: string
}

const wishColumns = (wishes: readonly KeyWish[]) => [
  wishes.map((wish) => wish.userNid),
  wishes.map((wish) => wish.deviceId),
  wishes.map((wish) => wish.algorithm),
]

/** Claims the oldest key of each device that has any. A key that another transaction is claiming is skipped. */
export function takeOneTimeKeys(tx: Tx, wishes: readonly KeyWish[], now: number): Promise<TakenKey[]> {
  return tx.query<TakenKey>(
    `WITH wish AS (
       SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[]) AS w (user_nid, device_id, algorithm)
     ), oldest AS (
       SELECT k.* FROM wish w CROSS JOIN LATERAL (
         SELECT user_nid, device_id, algorithm, key_id FROM one_time_key k
         WHERE k.user_nid = w.user_nid AND k.device_id = w.device_id AND k.algorithm = w.algorithm AND claimed_at IS NULL
         ORDER BY key_nid LIMIT 1 FOR UPDATE SKIP LOCKED
       ) k
     )
     UPDATE one_time_key k SET claimed_at = $4 FROM oldest o
     WHERE k.user_nid = o.user_nid AND k.device_id = o.device_id AND k.algorithm = o.algorithm AND k.key_id = o.key_id
     RETURNING k.user_nid, k.device_id, k.algorithm, k.key_id, k.json`,
    [...wishColumns(wishes), now],
  )
}

/** Gives the fallback keys of devices and marks them as used. */
export function useFallbackKeys(
  tx: Tx,
  wishes: readonly KeyWish[],
): Promise<(TakenKey & { readonly was_used: boolean })[]> {
  return tx.query(
    `WITH found AS (
       SELECT f.* FROM fallback_key f JOIN unnest($1::bigint[], $2::text[], $3::text[]) AS w (user_nid, device_id, algorithm)
       USING (user_nid, device_id, algorithm)
     ), marked AS (
       UPDATE fallback_key f SET is_used = true FROM found n
       WHERE f.user_nid = n.user_nid AND f.device_id = n.device_id AND f.algorithm = n.algorithm AND NOT f.is_used
     )
     SELECT user_nid, device_id, algorithm, key_id, json, is_used AS was_used FROM found`,
    wishColumns(wishes),
  )
}

/** Forgets keys that were claimed before a moment: nobody uploads them again. Gives how many. */
export async function forgetClaimedKeys(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM one_time_key WHERE (user_nid, device_id, algorithm, key_id) IN (
       SELECT user_nid, device_id, algorithm, key_id FROM one_time_key WHERE claimed_at < $1 LIMIT $2
     ) RETURNING key_nid`,
    [before, atMost],
  )
  return rows.length
}
