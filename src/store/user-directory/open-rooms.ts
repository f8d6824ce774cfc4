import type { Reader, Tx } from '../db/db.ts'

// Tables: open_room, directory_position; read: event

/** Notes which rooms anyone may join or read. */
export async function putOpenRooms(tx: Tx, rooms: ReadonlyMap<number, boolean>): Promise<void> {
  const those = (isOpen: boolean) => [...rooms].filter(([, value]) => value === isOpen).map(([roomNid]) => roomNid)
  if (rooms.size === 0) return
  await tx.query('DELETE FROM open_room WHERE room_nid = ANY ($1::bigint[])', [those(false)])
  await tx.query('INSERT INTO open_room SELECT * FROM unnest($1::bigint[]) ON CONFLICT DO NOTHING', [those(true)])
}

export async function directoryPosition(reader: Reader): Promise<number> {
  const [row] = await reader.query<{ event_nid: number }>('SELECT event_nid FROM directory_position', [])
  return row?.event_nid ?? 0
}

export async function setDirectoryPosition(tx: Tx, eventNid: number): Promise<void> {
  await tx.query('UPDATE directory_position SET event_nid = $1', [eventNid])
}

const TYPES: ReadonlySet<string> = new Set(['m.room.member', 'm.room.join_rules', 'm.room.history_visibility'])

/** The next numbers of events that the directory may learn from, and the number up to which there are no others. */
export async function directoryEventsAfter(
  reader: Reader,
  after: number,
  limit: number,
): Promise<{ readonly nids: readonly number[]; readonly upTo: number | undefined }> {
  const rows = await reader.query<{ event_nid: number; type: string }>(
    'SELECT event_nid, type FROM event WHERE event_nid > $1 ORDER BY event_nid LIMIT $2',
    [after, limit],
  )
  return {
    nids: rows.filter(({ type }) => TYPES.has(type)).map(({ event_nid }) => event_nid),
    upTo: rows.at(-1)?.event_nid,
  }
}
