import type { RoomId, UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: room, room_member; reads room_filling

export interface RoomRow {
  readonly room_nid: number
  readonly room_id: RoomId
  readonly room_version: string
  readonly head_version: number
  readonly extremities: number[]
  /** How many of the extremities the current state resolves; null for all. */
  readonly merged: number | null
  /** As text: old rooms may be deeper than a double counts. */
  readonly depth: string
  readonly last_pos: number
  readonly last_nid: number
  readonly notifiable: number
  /** The position up to which the timeline was removed; null for none. */
  readonly purged_to: number | null
  readonly state_chain: number
  readonly state_seq: number
  /** The number of the last change of `state_chain`. */
  readonly state_tip: number
  /** The highest number of a chain. */
  readonly last_chain: number
}

const COLUMNS = `room_nid, room_id, room_version, head_version, extremities, merged, depth::text AS depth, last_pos, last_nid, notifiable, purged_to,
  state_chain, state_seq,
  coalesce((SELECT max(seq) FROM state_change c WHERE c.room_nid = room.room_nid AND c.chain = room.state_chain), 0) AS state_tip,
  coalesce((SELECT max(chain) FROM state_chain c WHERE c.room_nid = room.room_nid), 0) AS last_chain`

export type Membership = 'join' | 'invite' | 'leave' | 'ban' | 'knock'

export interface MemberRow {
  readonly room_nid: number
  readonly user_nid: number
  readonly user_id: UserId
  readonly membership: Membership
  readonly event_nid: number
  readonly forgotten: boolean
}

/** A membership of one user. */
export interface OwnMembership {
  readonly room_nid: number
  readonly membership: Membership
  readonly event_nid: number
  /** The stream position of the change. */
  readonly changed_at: number
  readonly forgotten: boolean
}

export async function nextRoomNid(reader: Reader): Promise<number> {
  const [row] = await reader.query<{ nid: number }>(`SELECT nextval('room_nid_seq') AS nid`)
  return row!.nid
}

export async function findRoomNid(reader: Reader, roomId: string): Promise<number | undefined> {
  const [row] = await reader.query<{ room_nid: number }>('SELECT room_nid FROM room WHERE room_id = $1', [roomId])
  return row?.room_nid
}

export function getRooms(reader: Reader, roomNids: readonly number[]): Promise<RoomRow[]> {
  return reader.query<RoomRow>(`SELECT ${COLUMNS} FROM room WHERE room_nid = ANY($1::bigint[])`, [roomNids])
}

/** The number of each room's newest event. */
export function getNewestEvents(
  reader: Reader,
  roomNids: readonly number[],
): Promise<{ readonly room_nid: number; readonly room_id: RoomId; readonly last_nid: number }[]> {
  return reader.query('SELECT room_nid, room_id, last_nid FROM room WHERE room_nid = ANY($1::bigint[])', [roomNids])
}

/** The same for all rooms that a user is or was in. One row with columns of thousands of rooms takes a fifth of the driver's time for them. */
export async function getNewestEventsOfUser(
  reader: Reader,
  userNid: number,
): Promise<{ readonly room_nid: number; readonly room_id: RoomId; readonly last_nid: number }[]> {
  const [all] = await reader.query<{ nids: number[] | null; ids: string; newest: number[] }>(
    `SELECT array_agg(room_nid) AS nids, json_agg(room_id)::text AS ids, array_agg(last_nid) AS newest
     FROM room_member JOIN room USING (room_nid) WHERE user_nid = $1`,
    [userNid],
  )
  const { nids, ids, newest } = all!
  if (nids === null) return []
  const roomIds = JSON.parse(ids) as RoomId[]
  return nids.map((room_nid, index) => ({ room_nid, room_id: roomIds[index]!, last_nid: newest[index]! }))
}

/** The numbers of those of the rooms that this server knows. */
export function findRoomNids(
  reader: Reader,
  roomIds: readonly string[],
): Promise<{ readonly room_nid: number; readonly room_id: RoomId }[]> {
  return reader.query('SELECT room_nid, room_id FROM room WHERE room_id = ANY($1::text[])', [roomIds])
}

/** Those of the rooms that have an event which a reader at `position` (per writer) had not seen. */
export async function getRoomsChangedSince(
  reader: Reader,
  roomNids: readonly number[],
  position: readonly number[],
): Promise<number[]> {
  const rows = await reader.query<{ room_nid: number }>(
    `SELECT room_nid FROM room WHERE room_nid = ANY($1::bigint[])
     AND last_nid > coalesce(($2::bigint[])[(last_nid >> 48) + 1], 0)`,
    [roomNids, position],
  )
  return rows.map((row) => row.room_nid)
}

/** All present and past memberships of a user, read as one row. */
export async function getMemberships(reader: Reader, userNid: number): Promise<OwnMembership[]> {
  const [all] = await reader.query<{
    nids: number[] | null
    memberships: string
    events: number[]
    changes: number[]
    forgotten: number[]
  }>(
    `SELECT array_agg(room_nid) AS nids, json_agg(membership)::text AS memberships, array_agg(event_nid) AS events,
       array_agg(coalesce(changed_at, event_nid)) AS changes, array_agg(forgotten::int) AS forgotten
     FROM room_member WHERE user_nid = $1`,
    [userNid],
  )
  const { nids, memberships, events, changes, forgotten } = all!
  if (nids === null) return []
  const words = JSON.parse(memberships) as Membership[]
  return nids.map((room_nid, index) => ({
    room_nid,
    membership: words[index]!,
    event_nid: events[index]!,
    changed_at: changes[index]!,
    forgotten: forgotten[index] === 1,
  }))
}

/** The joined members of rooms whose user ids end in `:server`, with their member events. */
export function getJoinedOfServer(
  reader: Reader,
  roomNids: readonly number[],
  server: string,
): Promise<{ room_nid: number; user_nids: number[]; user_ids: string; changed: number[] }[]> {
  return reader.query(
    `SELECT room_nid, array_agg(user_nid) AS user_nids, json_agg(user_id)::text AS user_ids,
       array_agg(coalesce(changed_at, event_nid)) AS changed
     FROM room_member JOIN matrix_user USING (user_nid)
     WHERE room_nid = ANY($1::bigint[]) AND membership = 'join' AND user_id LIKE '%:' || $2 GROUP BY room_nid`,
    [roomNids, likeText(server)],
  )
}

/** The member events of a server's users who are joined to a room. */
export function getMemberEventsOfServer(
  reader: Reader,
  roomNid: number,
  server: string,
): Promise<{ user_nid: number; json: string }[]> {
  return reader.query(
    `SELECT user_nid, json FROM room_member JOIN matrix_user USING (user_nid) JOIN event USING (event_nid)
     WHERE room_member.room_nid = $1 AND membership = 'join' AND user_id LIKE '%:' || $2`,
    [roomNid, likeText(server)],
  )
}

/** A text as a pattern that only it matches. */
const likeText = (text: string): string => text.replace(/[\\%_]/g, '\\$&')

/** Sets the version of a room that is only known from an invitation. */
export async function setRoomVersion(tx: Tx, roomNid: number, version: string): Promise<void> {
  await tx.query('UPDATE room SET room_version = $2 WHERE room_nid = $1', [roomNid, version])
}

/** Everybody who is joined to a room. */
export function getJoinedUsers(reader: Reader, roomNid: number): Promise<{ user_nid: number; user_id: UserId }[]> {
  return reader.query(
    `SELECT user_nid, user_id FROM room_member JOIN matrix_user USING (user_nid) WHERE room_nid = $1 AND membership = 'join'`,
    [roomNid],
  )
}

/** Everybody who is joined to one of these rooms, each once. Left out are rooms of more than `most` people, and those whose members are not known. */
export async function getJoinedOfSmallRooms(
  reader: Reader,
  roomNids: readonly number[],
  most: number,
): Promise<UserId[]> {
  const rows = await reader.query<{ user_id: UserId }>(
    `SELECT DISTINCT user_id FROM unnest($1::bigint[]) AS wanted (nid) CROSS JOIN LATERAL (
       SELECT array_agg(user_nid) AS user_nids FROM (
         SELECT user_nid FROM room_member WHERE room_nid = wanted.nid AND membership = 'join' LIMIT $2 + 1) AS first
     ) AS joined JOIN matrix_user ON user_nid = ANY (user_nids)
     WHERE cardinality(user_nids) <= $2 AND NOT EXISTS (SELECT FROM room_filling WHERE room_nid = wanted.nid)`,
    [roomNids, most],
  )
  return rows.map(({ user_id }) => user_id)
}

export function getMembers(reader: Reader, roomNid: number, memberships: readonly Membership[]): Promise<MemberRow[]> {
  return reader.query<MemberRow>(
    `SELECT room_nid, user_nid, user_id, membership, event_nid, forgotten FROM room_member JOIN matrix_user USING (user_nid)
     WHERE room_nid = $1 AND membership = ANY($2::text[]) ORDER BY event_nid`,
    [roomNid, memberships],
  )
}

/** The joined users of rooms, each with the stream position of the last membership event, profile changes included. */
export function joinedMembers(
  reader: Reader,
  roomNids: readonly number[],
): Promise<{ room_nid: number; user_nid: number; changed_at: number }[]> {
  return reader.query(
    `SELECT room_nid, user_nid, coalesce(changed_at, event_nid) AS changed_at FROM room_member
     WHERE room_nid = ANY($1::bigint[]) AND membership = 'join'`,
    [roomNids],
  )
}

/** The rooms, of those given, that users are joined to, and since when. It reads the users' own rooms, so many given rooms cost nothing. */
export function joinedIn(
  reader: Reader,
  userNids: readonly number[],
  roomNids: readonly number[],
): Promise<{ room_nid: number; user_nid: number; changed_at: number }[]> {
  return reader.query(
    `WITH theirs AS MATERIALIZED (
       SELECT room_nid, user_nid, coalesce(changed_at, event_nid) AS changed_at FROM room_member
       WHERE user_nid = ANY($1::bigint[]) AND membership = 'join'
     )
     SELECT room_nid, user_nid, changed_at FROM theirs WHERE room_nid = ANY($2::bigint[])`,
    [userNids, roomNids],
  )
}

/** Those of some users who are in a room with a user, or invited into one. */
export async function whoSharesRoom(reader: Reader, userNid: number, userIds: readonly UserId[]): Promise<UserId[]> {
  const rows = await reader.query<{ user_id: UserId }>(
    `WITH asked AS MATERIALIZED (SELECT user_nid, user_id FROM matrix_user WHERE user_id = ANY($2::text[])),
       mine AS MATERIALIZED (SELECT room_nid FROM room_member WHERE user_nid = $1 AND membership = 'join')
     SELECT user_id FROM asked WHERE EXISTS (
       SELECT FROM room_member WHERE room_member.user_nid = asked.user_nid AND membership IN ('join', 'invite')
         AND room_nid IN (SELECT room_nid FROM mine))`,
    [userNid, userIds],
  )
  return rows.map(({ user_id }) => user_id)
}

/** Up to `limit` other members whose names stand for a room without a name: joined and invited ones, or else former ones. */
export async function getHeroes(reader: Reader, roomNid: number, userNid: number, limit: number): Promise<UserId[]> {
  const rows = await reader.query<{ user_id: UserId }>(
    `SELECT user_id FROM (
       SELECT user_nid, event_nid, membership NOT IN ('join', 'invite') AS is_gone FROM room_member
       WHERE room_nid = $1 AND user_nid <> $2 ORDER BY is_gone, event_nid LIMIT $3
     ) hero JOIN matrix_user USING (user_nid) ORDER BY is_gone, event_nid`,
    [roomNid, userNid, limit],
  )
  return rows.map((row) => row.user_id)
}

/** The same for several users, each in a room. */
export function getHeroesOf(
  reader: Reader,
  wanted: readonly { readonly roomNid: number; readonly userNid: number }[],
  limit: number,
): Promise<{ readonly room_nid: number; readonly user_nid: number; readonly user_id: UserId }[]> {
  return reader.query(
    `SELECT wanted.room_nid, wanted.user_nid, user_id FROM unnest($1::bigint[], $2::bigint[]) AS wanted (room_nid, user_nid)
     CROSS JOIN LATERAL (
       SELECT user_nid AS hero_nid, event_nid, membership NOT IN ('join', 'invite') AS is_gone FROM room_member m
       WHERE m.room_nid = wanted.room_nid AND m.user_nid <> wanted.user_nid ORDER BY is_gone, event_nid LIMIT $3
     ) hero JOIN matrix_user ON matrix_user.user_nid = hero_nid ORDER BY is_gone, event_nid`,
    [wanted.map(({ roomNid }) => roomNid), wanted.map(({ userNid }) => userNid), limit],
  )
}

/** How many members of each membership the rooms have. */
export function countMembers(
  reader: Reader,
  roomNids: readonly number[],
): Promise<{ room_nid: number; membership: Membership; count: number }[]> {
  return reader.query(
    `SELECT room_nid, membership, count(*) AS count FROM room_member WHERE room_nid = ANY($1::bigint[])
     GROUP BY room_nid, membership`,
    [roomNids],
  )
}

export async function forgetRoom(tx: Tx, userNid: number, roomNid: number): Promise<void> {
  await tx.query(
    "UPDATE room_member SET forgotten = true WHERE user_nid = $1 AND room_nid = $2 AND membership IN ('leave', 'ban')",
    [userNid, roomNid],
  )
}
