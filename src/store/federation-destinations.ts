import type { ServerName } from '../core/ids.ts'
import type { Reader, Tx } from './db.ts'

// Tables: federation_sent, federation_destination; read: federation_forward

/** A server that has not been sent everything. */
export interface DestinationRow {
  readonly server: ServerName
  readonly first_unsent: number
  readonly failures: number
  readonly retry_at: number
}

/** Up to where everything was sent, but for what destinations say; undefined before anything ever was. */
export async function sentPosition(reader: Reader): Promise<number | undefined> {
  const [row] = await reader.query<{ position: number }>('SELECT position FROM federation_sent')
  return row?.position
}

export function getDestinations(reader: Reader): Promise<DestinationRow[]> {
  return reader.query('SELECT server, first_unsent, failures, retry_at FROM federation_destination')
}

/** Notes how far everything is sent: who lags behind, and who does no more. */
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

const OWN_EVENTS = `FROM event JOIN matrix_user sender ON sender.user_nid = event.sender_nid
  WHERE event_nid >= $1 AND sender.user_id LIKE '%:' || $2 AND standing IS NULL AND room_pos IS NOT NULL
  AND (stream_pos IS NULL OR stream_pos >= 0)`

/** Our own, and those of others that are owed to a server as if they were. */
const EVENTS_OWED = `FROM event JOIN matrix_user sender ON sender.user_nid = event.sender_nid
  WHERE event_nid >= $1 AND standing IS NULL AND room_pos IS NOT NULL AND (sender.user_id LIKE '%:' || $2
    OR event_nid IN (SELECT event_nid FROM federation_forward WHERE from_server NOT LIKE $3))`

const escaped = (server: string) => server.replace(/[\\%_]/g, '\\$&')

const IN_SHARED_ROOMS = `AND room_nid IN (SELECT room_nid FROM room_member JOIN matrix_user member USING (user_nid)
  WHERE membership = 'join' AND member.user_id NOT LIKE '%:' || $2)`

/** The first events of our users, from a number on, in rooms that other servers are in. */
export async function getOwnEvents(reader: Reader, from: number, ownServer: string, atMost: number): Promise<number[]> {
  const rows = await reader.query<{ event_nid: number }>(
    `SELECT event_nid ${OWN_EVENTS} ${IN_SHARED_ROOMS} ORDER BY event_nid LIMIT $3`,
    [from, escaped(ownServer), atMost],
  )
  return rows.map(({ event_nid }) => event_nid)
}

const OF_ROOMS_WITH = `AND room_nid IN (SELECT room_nid FROM room_member JOIN matrix_user member USING (user_nid)
  WHERE membership = 'join' AND member.user_id LIKE '%:' || $3)`

/** The first events that are for us to send, from a number on, in rooms that a server is in. */
export async function getOwnEventsFor(
  reader: Reader,
  from: number,
  ownServer: string,
  server: string,
  atMost: number,
): Promise<number[]> {
  const rows = await reader.query<{ event_nid: number }>(
    `SELECT event_nid ${EVENTS_OWED} ${OF_ROOMS_WITH} ORDER BY event_nid LIMIT $4`,
    [from, escaped(ownServer), escaped(server), atMost],
  )
  return rows.map(({ event_nid }) => event_nid)
}

/** Of each room that a server is in the last such event from a number on: it fetches the rest by itself. */
export async function getLastOwnEventsFor(
  reader: Reader,
  from: number,
  ownServer: string,
  server: string,
): Promise<number[]> {
  const rows = await reader.query<{ event_nid: number }>(
    `SELECT max(event_nid) AS event_nid ${EVENTS_OWED} ${OF_ROOMS_WITH} GROUP BY room_nid ORDER BY 1`,
    [from, escaped(ownServer), escaped(server)],
  )
  return rows.map(({ event_nid }) => event_nid)
}
