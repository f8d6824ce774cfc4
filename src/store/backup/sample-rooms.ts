import type { Reader } from '../db/db.ts'

// Table: room

/** Some rooms, each time others: those that were written to last, half of them, and others by chance. None in an empty database. */
export async function roomsToVerify(reader: Reader, atMost: number): Promise<number[]> {
  const [found] = await reader.query<{ room: string | null }>(`SELECT to_regclass('room')::text AS room`)
  if (found?.room == null) return []
  const rows = await reader.query<{ room_nid: number }>(
    `(SELECT room_nid FROM room ORDER BY last_nid DESC LIMIT $1) UNION
     (SELECT room_nid FROM room ORDER BY random() LIMIT $2)`,
    [Math.ceil(atMost / 2), Math.floor(atMost / 2)],
  )
  return rows.map(({ room_nid }) => room_nid)
}
