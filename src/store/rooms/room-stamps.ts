import type { RoomId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Tables: room, room_filling

/** What says whether a copy of a room is still true. */
export interface RoomStamp {
  readonly room_nid: number
  readonly room_id: RoomId
  /** Every write of the room raises it. */
  readonly head_version: number
  readonly purged_to: number | null
  /** Whether its members are still being fetched from other servers. */
  readonly lacks_members: boolean
}

/** Those of the rooms that this server knows. */
export function findRoomStamps(reader: Reader, roomIds: readonly RoomId[]): Promise<RoomStamp[]> {
  return reader.query<RoomStamp>(
    `SELECT room_nid, room_id, head_version, purged_to,
       EXISTS (SELECT FROM room_filling f WHERE f.room_nid = room.room_nid AND f.filled_at IS NULL) AS lacks_members
     FROM room WHERE room_id = ANY($1::text[])`,
    [roomIds],
  )
}
