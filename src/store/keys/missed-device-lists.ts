import type { ServerName } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: missed_device_list; read: matrix_user, room_member

export interface MissedServer {
  readonly server: ServerName
  /** When the newest change was refused, in milliseconds. */
  readonly at: number
}

/** Notes that changes of device lists of a server were refused. */
export async function noteMissed(tx: Tx, { server, at }: MissedServer): Promise<void> {
  await tx.query(
    `INSERT INTO missed_device_list (server, at) VALUES ($1, $2)
     ON CONFLICT (server) DO UPDATE SET at = greatest(missed_device_list.at, excluded.at)`,
    [server, at],
  )
}

/** A page of the servers of which changes were refused, in the order of their names. */
export function listMissed(reader: Reader, after: string, atMost: number): Promise<MissedServer[]> {
  return reader.query<MissedServer>(
    'SELECT server, at FROM missed_device_list WHERE server > $1 ORDER BY server LIMIT $2',
    [after, atMost],
  )
}

/** All that was missed until then is made up for. */
export async function forgetMissed(tx: Tx, { server, at }: MissedServer): Promise<void> {
  await tx.query('DELETE FROM missed_device_list WHERE server = $1 AND at <= $2', [server, at])
}

/** A page of a server's users who are in rooms, in the order of their numbers. */
export async function listUsersInRooms(
  reader: Reader,
  server: string,
  afterNid: number,
  atMost: number,
): Promise<number[]> {
  const rows = await reader.query<{ user_nid: number }>(
    `SELECT user_nid FROM matrix_user u WHERE substr(user_id, strpos(user_id, ':') + 1) = $1 AND user_nid > $2
       AND EXISTS (SELECT FROM room_member m WHERE m.user_nid = u.user_nid AND membership = 'join')
     ORDER BY user_nid LIMIT $3`,
    [server, afterNid, atMost],
  )
  return rows.map((row) => row.user_nid)
}
