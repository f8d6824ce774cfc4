import type { RoomId, ServerName } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Tables read: matrix_user, room_member, room

/** Written as in the index on users. */
const serverOf = (userId: string) => `substr(${userId}, strpos(${userId}, ':') + 1)`

/**
 * All servers of whose users this server has heard, in the order of their names. It steps from one name in the index to the next, so its
 * cost is the number of servers and not of users.
 */
export async function listKnownServers(reader: Reader, ownServer: string): Promise<ServerName[]> {
  const name = serverOf('user_id')
  const rows = await reader.query<{ server: ServerName }>(
    `WITH RECURSIVE step (server) AS (
       (SELECT ${name} FROM matrix_user ORDER BY ${name} LIMIT 1)
       UNION ALL
       SELECT (SELECT ${name} FROM matrix_user WHERE ${name} > step.server ORDER BY ${name} LIMIT 1)
       FROM step WHERE step.server IS NOT NULL
     )
     SELECT server FROM step WHERE server IS NOT NULL AND server <> $1`,
    [ownServer],
  )
  return rows.map(({ server }) => server)
}

export async function isKnownServer(reader: Reader, server: string): Promise<boolean> {
  const rows = await reader.query(`SELECT 1 AS one FROM matrix_user WHERE ${serverOf('user_id')} = $1 LIMIT 1`, [
    server,
  ])
  return rows.length > 0
}

export interface SharedRoom {
  readonly room_id: RoomId
  /** The number of the room's newest event. */
  readonly stream_ordering: number
}

/** A page of the rooms that a server's users are in, in the order of their ids, and how many there are. */
export async function listRoomsOfServer(
  reader: Reader,
  server: string,
  page: { readonly from: number; readonly limit: number; readonly isDescending: boolean },
): Promise<{ readonly rooms: readonly SharedRoom[]; readonly total: number }> {
  const shared = `SELECT DISTINCT room_nid FROM matrix_user JOIN room_member USING (user_nid)
    WHERE ${serverOf('user_id')} = $1 AND membership = 'join'`
  const way = page.isDescending ? 'DESC' : 'ASC'
  const [rooms, [count]] = await Promise.all([
    reader.query<SharedRoom>(
      `SELECT room_id, last_nid AS stream_ordering FROM (${shared}) s JOIN room USING (room_nid)
       ORDER BY room_id ${way} OFFSET $2 LIMIT $3`,
      [server, page.from, page.limit],
    ),
    reader.query<{ total: number }>(`SELECT count(*)::int AS total FROM (${shared}) s`, [server]),
  ])
  return { rooms, total: count?.total ?? 0 }
}
