import type pg from 'pg'
import { ProtocolError } from '../../core/errors.ts'
import type { Reader } from './db.ts'

/** One writer per index and database; any number that no other lock here uses. */
const WRITER_LOCK = 0x4865_7700

/** Index of the one process that a database has for now. */
export const WRITER = 0

/** How long this session waits for a lock: the rows that it writes may be locked by others. */
export const LOCK_PATIENCE_MS = 5_000

/** Another process holds the lock. */
export class WriterPresent extends ProtocolError {}

/**
 * Makes sure that no other process writes events under the same index: their numbers would collide. The lock is of the session, so it is
 * free at the moment when the process ends.
 *
 * @param patienceMs how long it waits for another process that has it, and may be ending
 * @throws WriterPresent if that one still has it then
 */
export async function claimWriter(client: pg.Client, writer: number, patienceMs = LOCK_PATIENCE_MS): Promise<void> {
  await client.query(`SET lock_timeout = ${patienceMs}`)
  try {
    await client.query('SELECT pg_advisory_lock($1)', [WRITER_LOCK + writer])
  } catch (error) {
    if ((error as { code?: unknown }).code !== '55P03') throw error
    const message = 'another Hearth is using this database: stop it, or give this one a database of its own'
    throw new WriterPresent('M_UNKNOWN', message, { status: 503 })
  }
  await client.query(`SET lock_timeout = ${LOCK_PATIENCE_MS}`)
}

/** Whether a process writes events to this database: a server is running. */
export async function isWriterPresent(reader: Reader, writer: number): Promise<boolean> {
  const rows = await reader.query(
    `SELECT 1 AS one FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid::bigint = $1 AND objsubid = 1
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    [WRITER_LOCK + writer],
  )
  return rows.length > 0
}
