import type { ServerName } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: federation_sent, federation_destination, federation_parting

/** A server that has not been sent everything. */
export interface DestinationRow {
  readonly server: ServerName
  readonly first_unsent: number
  readonly failures: number
  readonly retry_at: number
}

/** The position up to which everything is sent, except to the servers with a row of their own; undefined before the first event. */
export async function sentPosition(reader: Reader): Promise<number | undefined> {
  const [row] = await reader.query<{ position: number }>('SELECT position FROM federation_sent')
  return row?.position
}

export function getDestinations(reader: Reader): Promise<DestinationRow[]> {
  return reader.query('SELECT server, first_unsent, failures, retry_at FROM federation_destination ORDER BY failures')
}

/** Servers that have not been sent everything, and how many there are. */
export interface Lagging {
  readonly servers: readonly Pick<DestinationRow, 'server' | 'failures' | 'retry_at'>[]
  readonly total: number
  readonly failing: number
}

/** Those that fail most often first, and at most so many of them. */
export async function surveyDestinations(reader: Reader, atMost: number): Promise<Lagging> {
  const [servers, [counted]] = await Promise.all([
    reader.query<Lagging['servers'][number]>(
      'SELECT server, failures, retry_at FROM federation_destination ORDER BY failures DESC, server LIMIT $1',
      [atMost],
    ),
    reader.query<Pick<Lagging, 'total' | 'failing'>>(
      'SELECT count(*) AS total, count(*) FILTER (WHERE failures > 0) AS failing FROM federation_destination',
    ),
  ])
  return { servers, total: counted?.total ?? 0, failing: counted?.failing ?? 0 }
}

/** An event of ours that kicked or banned the last user of a server. */
export interface Parting {
  readonly server: ServerName
  readonly event_nid: number
}

/** The servers that such events must still be sent to. */
export async function serversWithPartings(reader: Reader): Promise<ServerName[]> {
  const rows = await reader.query<{ server: ServerName }>('SELECT DISTINCT server FROM federation_parting')
  return rows.map(({ server }) => server)
}

/** Keeps such events until {@link removePartings}. */
export async function keepPartings(tx: Tx, partings: readonly Parting[], now: number): Promise<void> {
  await tx.query(
    `INSERT INTO federation_parting (server, event_nid, created_at)
     SELECT server, event_nid, $3 FROM unnest($1::text[], $2::bigint[]) AS parting (server, event_nid) ON CONFLICT DO NOTHING`,
    [partings.map(({ server }) => server), partings.map(({ event_nid }) => event_nid), now],
  )
}

/** Removes the sent ones of a server: all before a number. */
export async function removePartings(tx: Tx, server: ServerName, before: number): Promise<void> {
  await tx.query('DELETE FROM federation_parting WHERE server = $1 AND event_nid < $2', [server, before])
}

/** Removes those from before a moment, and gives how many. */
export async function forgetPartings(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM federation_parting WHERE (server, event_nid) IN
       (SELECT server, event_nid FROM federation_parting WHERE created_at < $1 LIMIT $2)
     RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}

/** Saves the position up to which everything is sent, the servers that lag behind, and those that no longer do. */
export async function saveSending(
  tx: Tx,
  position: number,
  behind: readonly DestinationRow[],
  caughtUp: readonly ServerName[],
): Promise<void> {
  await tx.query(
    `INSERT INTO federation_sent (position) VALUES ($1) ON CONFLICT (is_only) DO UPDATE SET position = EXCLUDED.position`,
    [position],
  )
  if (caughtUp.length > 0) {
    await tx.query('DELETE FROM federation_destination WHERE server = ANY($1::text[])', [caughtUp])
  }
  if (behind.length === 0) return
  await tx.query(
    `INSERT INTO federation_destination (server, first_unsent, failures, retry_at)
     SELECT * FROM unnest($1::text[], $2::bigint[], $3::integer[], $4::bigint[])
     ON CONFLICT (server) DO UPDATE SET first_unsent = EXCLUDED.first_unsent, failures = EXCLUDED.failures,
       retry_at = EXCLUDED.retry_at`,
    [
      behind.map(({ server }) => server),
      behind.map(({ first_unsent }) => first_unsent),
      behind.map(({ failures }) => failures),
      behind.map(({ retry_at }) => retry_at),
    ],
  )
}
