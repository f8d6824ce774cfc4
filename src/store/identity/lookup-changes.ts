import type { Reader, Tx } from '../db/db.ts'
import { HASH, workInBackground } from './peppers.ts'

// Tables: identity_lookup_version, identity_lookup_change, identity_pepper, identity_binding

export interface PepperRow {
  readonly nid: number
  readonly pepper: string
}

/** The user of a hash since a version; null if the address is no longer bound. */
export interface LookupChange {
  readonly version: number
  readonly pepperNid: number
  readonly hash: Buffer
  readonly user: string | null
}

/** The state of lookups at one moment. */
export interface LookupState {
  readonly version: number
  readonly current: PepperRow
  /** Set during a rotation. */
  readonly next: PepperRow | undefined
  /** In their order. */
  readonly changes: readonly LookupChange[]
}

interface StateRow {
  readonly version: number
  readonly nid: number
  readonly pepper: string
  readonly next_nid: number | null
  readonly next_pepper: string | null
  readonly changes: string | null
}

/**
 * Reads the state of lookups in a single statement, and so at one moment.
 *
 * @param versions whose changes are included
 */
export async function readLookupState(
  reader: Reader,
  versions: { readonly after: number; readonly upTo: number },
): Promise<LookupState> {
  const [row] = await reader.query<StateRow>(
    `SELECT v.version, p.pepper_nid AS nid, p.pepper, n.pepper_nid AS next_nid, n.pepper AS next_pepper, (
       SELECT json_agg(json_build_array(c.version, c.pepper_nid, encode(c.hash, 'hex'), c.user_id) ORDER BY c.version)::text
       FROM identity_lookup_change c WHERE c.version > $1 AND c.version <= $2) AS changes
     FROM identity_lookup_version v, identity_pepper p LEFT JOIN identity_pepper n ON n.standing = 'next'
     WHERE p.standing = 'current'`,
    [versions.after, versions.upTo],
  )
  if (row === undefined) throw new Error('there is no current pepper')
  const { version, nid, pepper, next_nid, next_pepper } = row
  const changes: [number, number, string, string | null][] = row.changes === null ? [] : JSON.parse(row.changes)
  return {
    version,
    current: { nid, pepper },
    next: next_nid === null ? undefined : { nid: next_nid, pepper: next_pepper as string },
    changes: changes.map(([version, pepperNid, hash, user]) => ({
      ...{ version, pepperNid, user },
      hash: Buffer.from(hash, 'hex'),
    })),
  }
}

/** Some bindings, hashed. */
export interface HashedBindings {
  readonly count: number
  /** The last one's number. */
  readonly last: number
  /** 32 bytes each, end to end. */
  readonly hashes: Buffer
  /** Users in the same order, in UTF-8, with a NUL between any two. */
  readonly users: Buffer
}

/** The next bindings after one, hashed with a pepper; undefined when there are no more. */
export async function hashBindingsAfter(
  tx: Tx,
  { after, pepper, atMost }: { readonly after: number; readonly pepper: string; readonly atMost: number },
): Promise<HashedBindings | undefined> {
  await workInBackground(tx)
  const [row] = await tx.query<HashedBindings & { last: number | null }>(
    `SELECT count(*) AS count, max(binding_nid) AS last, string_agg(${HASH}, ''::bytea) AS hashes,
       string_agg(convert_to(user_id, 'UTF8'), '\\x00'::bytea) AS users
     FROM (SELECT binding_nid, medium, address, user_id, $2::text AS pepper FROM identity_binding
           WHERE binding_nid > $1 ORDER BY binding_nid LIMIT $3) bound`,
    [after, pepper, atMost],
  )
  return row === undefined || row.last === null ? undefined : row
}

/** Keeps the newest `kept` changes; a process that has not read the others by then must read all bindings again. Gives how many went. */
export async function forgetLookupChanges(tx: Tx, kept: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM identity_lookup_change WHERE version = ANY(ARRAY(
       SELECT version FROM identity_lookup_change
       WHERE version <= (SELECT version FROM identity_lookup_version) - $1 ORDER BY version LIMIT $2)) RETURNING 1 AS one`,
    [kept, atMost],
  )
  return rows.length
}
