import type { EventId, ServerName } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { parseExact, writeJson } from '../../core/large-integers.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: stripped_state, room_member, event

export async function getStrippedState(reader: Reader, eventId: EventId): Promise<JsonObject[]> {
  const [row] = await reader.query<{ state: string }>('SELECT state FROM stripped_state WHERE event_id = $1', [eventId])
  return row ? (parseExact(row.state) as JsonObject[]) : []
}

/** The number of a user's unanswered invitations from other servers, and how many of them are from one server. */
export async function countOpenInvitations(
  reader: Reader,
  userNid: number,
  server: ServerName,
): Promise<{ readonly ofServer: number; readonly ofUser: number }> {
  const [row] = await reader.query<{ of_server: number; of_user: number }>(
    `SELECT count(*) FILTER (WHERE user_id LIKE '%:' || $2)::int AS of_server, count(*)::int AS of_user
     FROM room_member JOIN event USING (event_nid) JOIN matrix_user sender ON sender.user_nid = event.sender_nid
     WHERE room_member.user_nid = $1 AND membership = 'invite' AND standing = 'outlier'`,
    [userNid, server.replace(/[\\%_]/g, '\\$&')],
  )
  return { ofServer: row?.of_server ?? 0, ofUser: row?.of_user ?? 0 }
}

export async function putStrippedState(tx: Tx, eventId: EventId, state: readonly JsonObject[]): Promise<void> {
  await tx.query(
    'INSERT INTO stripped_state (event_id, state) VALUES ($1, $2) ON CONFLICT (event_id) DO UPDATE SET state = EXCLUDED.state',
    [eventId, writeJson(state)],
  )
}
