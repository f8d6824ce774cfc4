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
  /** JSON: digests of the options that nodes share. */
  readonly settings: string
  /** A proof of the cluster's secret; undefined for a process alone. */
  readonly cluster: string | undefined
}

/** A place among the nodes, with the process that has it or had it last. */
export interface NodeRow extends Omit<NodeFacts, 'cluster' | 'settings'> {
  readonly fence: number
  readonly cluster: string | null
  /** Undefined if the process does not say: it is of an earlier release. */
  readonly settings: string | undefined
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
  return known?.known ? readNode(reader, writer) : undefined
}

/** The same where the database is known to have nodes. */
export async function readNode(reader: Reader, writer: number): Promise<NodeRow | undefined> {
  const [row] = await reader.query<NodeRow & { readonly settings: string | null | undefined }>(
    `SELECT fence, holder, address, release, keys, files, cluster, expires_at - ${NOW} AS left_ms,
       to_jsonb(n) ->> 'settings' AS settings
     FROM node n WHERE node = $1`,
    [writer],
  )
  return row && { ...row, settings: settingsIn(row.settings, row.holder) }
}

/** They stand behind the name of their process: one of an earlier release leaves there what the process before it wrote. */
function settingsIn(text: string | null | undefined, holder: string): string | undefined {
  return text?.startsWith(`${holder} `) ? text.slice(holder.length + 1) : undefined
}

function settingsText({ holder, settings }: Pick<NodeFacts, 'holder' | 'settings'>): string {
  return `${holder} ${settings}`
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
    `INSERT INTO node AS n (node, fence, holder, address, release, keys, cluster, since, expires_at, files, settings)
     VALUES ($1, 1, $2, $3, $4, $5, $6, ${NOW}, ${NOW} + $7::bigint, $8, $9)
     ON CONFLICT (node) DO UPDATE SET fence = n.fence + 1, holder = EXCLUDED.holder, address = EXCLUDED.address,
       release = EXCLUDED.release, keys = EXCLUDED.keys, cluster = EXCLUDED.cluster, since = EXCLUDED.since,
       expires_at = EXCLUDED.expires_at, files = EXCLUDED.files, settings = EXCLUDED.settings
     WHERE n.expires_at <= ${NOW} RETURNING fence`,
    [
      writer,
      facts.holder,
      facts.address,
      facts.release,
      facts.keys,
      facts.cluster ?? null,
      leaseMs,
      facts.files,
      settingsText(facts),
    ],
  )
  return row?.fence
}

/** Prolongs a lease, even one that has ended if nobody took the place. @returns false if another process has the place */
export async function renewNode(
  connection: Reader,
  { writer, fence }: Fence,
  facts: Pick<NodeFacts, 'holder' | 'keys' | 'settings'>,
  leaseMs: number,
): Promise<boolean> {
  const rows = await connection.query(
    `UPDATE node SET keys = $3, settings = $5, expires_at = ${NOW} + $4::bigint
     WHERE node = $1 AND fence = $2 RETURNING node`,
    [writer, fence, facts.keys, leaseMs, settingsText(facts)],
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

const SESSION = 'hearth '

/** The name that the connections of a node bear. */
export function sessionName(holder: string): string {
  return `${SESSION}${holder}`
}

/** How many processes of this cluster use the database, besides the one that had the place last: they stand by, or begin. */
export async function countSuccessors(reader: Reader, writer: number): Promise<number> {
  const [row] = await reader.query<{ found: number }>(
    `SELECT count(DISTINCT application_name)::int AS found FROM pg_stat_activity
     WHERE datname = current_database() AND usename = current_user AND application_name LIKE $2
       AND application_name <> $3 || (SELECT holder FROM node WHERE node = $1)`,
    [writer, `${SESSION}%`, SESSION],
  )
  return row!.found
}

/**
 * Ends what a process that lost its place still has open. While one of its transactions may still commit, what another process reads may be
 * wrong a moment later, and its locks would hold that one up.
 *
 * @returns whether all have ended; false if one is still there after `patienceMs`
 */
export async function endSessions(reader: Reader, holder: string, patienceMs: number): Promise<boolean> {
  const until = performance.now() + patienceMs
  // All at once, and only then they are waited for, one after another.
  await reader.query(`SELECT pg_terminate_backend(pid) AS is_told FROM pg_stat_activity ${OF_SESSION}`, [
    sessionName(holder),
  ])
  for (let leftMs = patienceMs; leftMs > 0; leftMs = Math.ceil(until - performance.now())) {
    // It says false also of one that has just ended by itself, so only a look that finds none is believed.
    const [one] = await reader.query(
      `SELECT pg_terminate_backend(pid, $2) AS has_ended FROM pg_stat_activity ${OF_SESSION} LIMIT 1`,
      [sessionName(holder), leftMs],
    )
    if (one === undefined) return true
  }
  return false
}

const OF_SESSION = 'WHERE datname = current_database() AND usename = current_user AND application_name = $1'
