import type { RoomId, UserId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Read: room_member, matrix_user, room

export interface MutualRoomsPage {
  /** In the order of the ids' bytes. */
  readonly room_ids: readonly RoomId[]
  /** All rooms, on whatever page. */
  readonly count: number
}

/**
 * The rooms that two users are both joined to.
 *
 * @param after the rooms up to this one were on earlier pages; an empty text for the first page
 */
export async function pageOfMutualRooms(
  reader: Reader,
  userNid: number,
  other: UserId,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<MutualRoomsPage> {
  const [page] = await reader.query<MutualRoomsPage>(
    `WITH mutual AS MATERIALIZED (
       SELECT room_id FROM matrix_user AS other
       JOIN room_member AS theirs ON theirs.user_nid = other.user_nid AND theirs.membership = 'join'
       JOIN room_member AS own ON own.user_nid = $1 AND own.room_nid = theirs.room_nid AND own.membership = 'join'
       JOIN room ON room.room_nid = own.room_nid
       WHERE other.user_id = $2
     )
     SELECT ARRAY(SELECT room_id FROM mutual WHERE room_id > $3 ORDER BY room_id LIMIT $4) AS room_ids,
       (SELECT count(*)::int FROM mutual) AS count`,
    [userNid, other, after, limit],
  )
  return page ?? { room_ids: [], count: 0 }
}

/** Whether two users are both joined to some room. */
export async function areInOneRoom(reader: Reader, userNid: number, other: UserId): Promise<boolean> {
  const [row] = await reader.query<{ are: boolean }>(
    `SELECT EXISTS (
       SELECT FROM matrix_user AS other
       JOIN room_member AS theirs ON theirs.user_nid = other.user_nid AND theirs.membership = 'join'
       JOIN room_member AS own ON own.user_nid = $1 AND own.room_nid = theirs.room_nid AND own.membership = 'join'
       WHERE other.user_id = $2) AS are`,
    [userNid, other],
  )
  return row?.are ?? false
}
