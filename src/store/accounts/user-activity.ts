import type { UserId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'
import { decodable } from '../db/decodable.ts'

// Tables read: room_member, state_key, state_change, event

/** Every change of a member's state in the rooms that a user was ever in: from the log of states, which has an index by key. */
const CHANGES = `FROM room_member m
  JOIN state_key k ON k.room_nid = m.room_nid AND k.type = 'm.room.member'
  JOIN state_change c ON c.room_nid = k.room_nid AND c.key_id = k.key_id
  JOIN event e ON e.event_nid = c.event_nid`

/** How many invitations a user has sent from a time on (milliseconds), in rooms that they are or were in. */
export async function countSentInvites(reader: Reader, userNid: number, since: number): Promise<number> {
  const [row] = await reader.query<{ count: number }>(
    `SELECT count(DISTINCT e.event_nid)::int AS count ${CHANGES}
     WHERE m.user_nid = $1 AND e.sender_nid = $1 AND e.origin_server_ts >= $2
       AND ${decodable('e.json')} #>> '{content,membership}' = 'invite'`,
    [userNid, since],
  )
  return row?.count ?? 0
}

/** How many rooms a user has joined from a time on (milliseconds), those that they have left since included. */
export async function countJoinedRooms(
  reader: Reader,
  user: { readonly userNid: number; readonly userId: UserId },
  since: number,
): Promise<number> {
  const [row] = await reader.query<{ count: number }>(
    `SELECT count(DISTINCT e.room_nid)::int AS count ${CHANGES}
     WHERE m.user_nid = $1 AND k.state_key = $2 AND e.origin_server_ts >= $3
       AND ${decodable('e.json')} #>> '{content,membership}' = 'join'`,
    [user.userNid, user.userId, since],
  )
  return row?.count ?? 0
}
