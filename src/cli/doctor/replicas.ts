import pg from 'pg'
import type { Config } from '../../config/schema.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

interface Facts {
  readonly is_replica: boolean
  readonly lsn: string | null
}

const CONNECT_TIMEOUT_MS = 5_000
/** What a replica may be behind in bytes, and still count as one that follows. */
const NEAR_BYTES = 16 * 1024 * 1024
const CONTENTS = `SELECT name, (SELECT holder FROM node WHERE node = 0) AS holder FROM server_name`

/** Checks that each replica is one, that it is of this database, and that it follows. Writes nothing. */
export async function examineReplicas({ database }: Config): Promise<readonly Finding[]> {
  const { url, replicas } = database
  if (url === undefined || replicas.length === 0) return []
  const primary = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS })
  try {
    await primary.connect()
    const findings: Finding[] = []
    for (const replica of replicas) findings.push(await examine(primary, replica))
    return findings
  } catch {
    // That it does not answer is said elsewhere.
    return []
  } finally {
    await primary.end().catch(() => undefined)
  }
}

async function examine(primary: pg.Client, connectionString: string): Promise<Finding> {
  const subject = `replica ${new URL(connectionString).host}`
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: CONNECT_TIMEOUT_MS })
  try {
    await client.connect()
    const [facts] = (
      await client.query<Facts>('SELECT pg_is_in_recovery() AS is_replica, pg_last_wal_replay_lsn()::text AS lsn')
    ).rows as [Facts]
    if (!facts.is_replica)
      return problem(
        subject,
        'is no replica: it takes writes itself',
        'remove it from database.replicas, or set it up again',
      )
    const behind = await bytesBehind(primary, facts.lsn ?? '0/0')
    const [there, here] = [await client.query(CONTENTS), await primary.query(CONTENTS)]
    if (JSON.stringify(there.rows) !== JSON.stringify(here.rows) && behind <= 0)
      return problem(subject, 'is a replica of another database', 'correct database.replicas')
    const text = `${(Math.max(0, behind) / 1024 / 1024).toFixed(1)} MB behind`
    return behind <= NEAR_BYTES
      ? ok(subject, text)
      : warning(subject, text, 'see pg_stat_replication at the primary: until it follows, the primary answers')
  } catch (error) {
    const { code, message } = error as { readonly code?: string; readonly message: string }
    if (code === '42P01') return problem(subject, 'has no database of this server', 'correct database.replicas')
    return problem(
      subject,
      `does not answer: ${message}`,
      'see database.replicas, and whether it runs and lets this machine in',
    )
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function bytesBehind(primary: pg.Client, lsn: string): Promise<number> {
  const { rows } = await primary.query<{ bytes: string }>('SELECT pg_current_wal_lsn() - $1::pg_lsn AS bytes', [lsn])
  return Number(rows[0]!.bytes)
}
