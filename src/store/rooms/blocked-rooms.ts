import type { Reader, Tx } from '../db/db.ts'

// Table: blocked_room

/** Who blocked a room; undefined when it is not blocked. */
export async function findBlocker(reader: Reader, roomId: string): Promise<string | undefined> {
  const [row] = await reader.query<{ blocked_by: string }>('SELECT blocked_by FROM blocked_room WHERE room_id = $1', [
    roomId,
  ])
  return row?.blocked_by
}

export async function blockRoom(tx: Tx, roomId: string, by: string, at: number): Promise<void> {
  await tx.query(
    'INSERT INTO blocked_room (room_id, blocked_by, blocked_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
    [roomId, by, at],
  )
}

export async function unblockRoom(tx: Tx, roomId: string): Promise<void> {
  await tx.query('DELETE FROM blocked_room WHERE room_id = $1', [roomId])
}
