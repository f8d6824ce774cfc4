import type pg from 'pg'
import type { Reader } from '../db/db.ts'

// Table: node

/** What a process says of itself when it takes a place among the nodes. */
export interface NodeFacts {
  /** A random name of the process, which its connections to the database bear too. */
  readonly holder: string
  /** Where it listens: for other nodes, or alone for clients. Empty if nowhere. */
  readonly address: string
  readonly release: string
  /** Its public keys. */
  readonly keys: string
  /** Where it keeps the files of users. */
  readonly files: string
  /** A proof of the cluster's secret; undefined for a process alone. */
  readonly cluster: string | undefined
}

/** A place among the nodes, with the process that has it or had it last. */
export interface NodeRow extends Omit<NodeFacts, 'cluster'> {
  readonly fence: number
  readonly cluster: string | null
  /** Milliseconds until its lease ends, by the clock of the database; not above 0 if it has ended. */
  readonly left_ms: number
}

/** A place that a process has: its number, and the fencing number that it got with it. */
export interface Fence {
  readonly writer: number
  readonly fence: number
}

const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** The time of the database in milliseconds. */
export async function databaseTime(reader: Reader): Promise<number> {
  const [row] = await reader.query<{ now: number }>(`SELECT ${NOW} AS now`)
  return row!.now
}

/** Undefined if nobody has had the place. The database may be of an earlier release, which had no nodes. */
export async function findNode(reader: Reader, writer: number): Promise<NodeRow | undefined> {
  const [known] = await reader.query<{ known: boolean }>(`SELECT to_regclass('node') IS NOT NULL AS known`)
  if (!known?.known) return undefined
  const [row] = await reader.query<NodeRow>(
    `SELECT fence, holder, address, release, keys, files, cluster, expires_at - ${NOW} AS left_ms FROM node WHERE node = $1`,
    [writer],
  )
  return row
}

/**
 * Takes a place whose lease has ended, with the next fencing number.
 *
 * @param leaseMs how long it is this process's unless it is renewed; 0 for a process alone
 * @returns undefined if the lease of another process has not ended
 */
export async function takeNode(
  connection: Reader,
  writer: number,
  facts: NodeFacts,
  leaseMs: number,
): Promise<number | undefined> {
  const [row] = await connection.query<{ fence: number }>(
    `INSERT INTO node AS n (node, fence, holder, address, release, keys, cluster, since, expires_at, files)
     VALUES ($1, 1, $2, $3, $4, $5, $6, ${NOW}, ${NOW} + $7::bigint, $8)
     ON CONFLICT (node) DO UPDATE SET fence = n.fence + 1, holder = EXCLUDED.holder, address = EXCLUDED.address,
       release = EXCLUDED.release, keys = EXCLUDED.keys, cluster = EXCLUDED.cluster, since = EXCLUDED.since,
       expires_at = EXCLUDED.expires_at, files = EXCLUDED.files
     WHERE n.expires_at <= ${NOW} RETURNING fence`,
    [writer, facts.holder, facts.address, facts.release, facts.keys, facts.cluster ?? null, leaseMs, facts.files],
  )
  return row?.fence
}

/** Prolongs a lease, even one that has ended if nobody took the place. @returns false if another process has the place */
export async function renewNode(
  connection: Reader,
  { writer, fence }: Fence,
  keys: string,
  leaseMs: number,
): Promise<boolean> {
  const rows = await connection.query(
    `UPDATE node SET keys = $3, expires_at = ${NOW} + $4::bigint WHERE node = $1 AND fence = $2 RETURNING node`,
    [writer, fence, keys, leaseMs],
  )
  return rows.length > 0
}

/** Gives a place back: from now on anybody may take it. */
export async function leaveNode(connection: Reader, { writer, fence }: Fence): Promise<void> {
  await connection.query(`UPDATE node SET expires_at = ${NOW} WHERE node = $1 AND fence = $2`, [writer, fence])
}

/** Ends the lease of a process that is known to have ended: nobody has to wait for it. */
export async function endLease(reader: Reader, holder: string): Promise<void> {
  await reader.query(`UPDATE node SET expires_at = ${NOW} WHERE holder = $1 AND expires_at > ${NOW}`, [holder])
}

/**
 * For a process alone that has its lock again after it lost its connection: the database may be a replica that was promoted and does not
 * know the last fencing number.
 */
export async function restoreFence(client: pg.Client, { writer, fence }: Fence): Promise<void> {
  await client.query('UPDATE node SET fence = $2 WHERE node = $1 AND fence < $2', [writer, fence])
}

/** The name that the connections of a node bear. */
export function sessionName(holder: string): string {
  return `hearth ${holder}`
}

/** Ends what a process that lost its place still has open: locks of a process that was stopped would hold up the next one. */
export async function endSessions(reader: Reader, holder: string): Promise<void> {
  await reader.query(
    `SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
     WHERE datname = current_database() AND usename = current_user AND application_name = $1`,
    [sessionName(holder)],
  )
}
