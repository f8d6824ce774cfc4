import type { Reader, Tx } from '../db/db.ts'

// Tables: published_room, room

export interface PublishedRow {
  readonly room_nid: number
  readonly state_chain: number
  readonly state_seq: number
}

/** The rooms in the directory, each with the point of its current state. */
export function getPublishedRooms(reader: Reader): Promise<PublishedRow[]> {
  return reader.query<PublishedRow>(
    'SELECT room_nid, state_chain, state_seq FROM published_room JOIN room USING (room_nid)',
  )
}

export async function isPublished(reader: Reader, roomNid: number): Promise<boolean> {
  const rows = await reader.query('SELECT FROM published_room WHERE room_nid = $1', [roomNid])
  return rows.length > 0
}

export async function publishRoom(tx: Tx, roomNid: number, ts: number): Promise<void> {
  await tx.query('INSERT INTO published_room (room_nid, published_ts) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
    roomNid,
    ts,
  ])
}

export async function unpublishRoom(tx: Tx, roomNid: number): Promise<void> {
  await tx.query('DELETE FROM published_room WHERE room_nid = $1', [roomNid])
}
