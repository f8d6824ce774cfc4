import type { EventId, RoomId, UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: user_redaction, event, room_member, matrix_user, room

/** What is to be redacted of a user. Times are milliseconds. */
export interface RedactionRequest {
  /** The user id of the operator, if it is a user. */
  readonly by: UserId | null
  readonly reason: string | null
  /** The most events of each room that are looked at. */
  readonly limit: number
  /** The operator redacts, and not the user. */
  readonly asOperator: boolean
  readonly after: number | null
  readonly before: number | null
  /** Only these rooms; null: all that the user is or was in. */
  readonly rooms: readonly RoomId[] | null
}

export interface UserRedactionRow {
  readonly redaction_id: string
  readonly user_id: UserId
  readonly request: RedactionRequest
  readonly rooms: readonly number[] | null
  readonly room_index: number
  readonly below_pos: number | null
  readonly in_room: number
  readonly redacted: number
  readonly withdrawn: number
  readonly failed: Readonly<Record<string, string>>
  readonly error: string | null
  readonly asked_at: number
  readonly ended_at: number | null
}

interface StoredRow extends Omit<UserRedactionRow, 'request' | 'failed'> {
  readonly request: string
  readonly failed: string
}

const COLUMNS = `redaction_id, user_id, request, rooms, room_index, below_pos, in_room, redacted, withdrawn, failed, error,
  asked_at, ended_at`

const read = (row: StoredRow): UserRedactionRow => ({
  ...row,
  request: JSON.parse(row.request) as RedactionRequest,
  failed: JSON.parse(row.failed) as Record<string, string>,
})

/** Notes redactions of users, to be carried out in this order. */
export async function insertUserRedactions(
  tx: Tx,
  wanted: readonly { readonly id: string; readonly userId: UserId }[],
  request: RedactionRequest,
  askedAt: number,
): Promise<void> {
  await tx.query(
    `INSERT INTO user_redaction (redaction_id, user_id, request, asked_at)
     SELECT id, user_id, $3, $4 FROM unnest($1::text[], $2::text[]) AS wanted (id, user_id)`,
    [wanted.map(({ id }) => id), wanted.map(({ userId }) => userId), JSON.stringify(request), askedAt],
  )
}

export async function findUserRedaction(reader: Reader, id: string): Promise<UserRedactionRow | undefined> {
  const [row] = await reader.query<StoredRow>(`SELECT ${COLUMNS} FROM user_redaction WHERE redaction_id = $1`, [id])
  return row && read(row)
}

/** The redaction that was asked for first and has not ended. */
export async function nextUserRedaction(reader: Reader): Promise<UserRedactionRow | undefined> {
  const [row] = await reader.query<StoredRow>(
    `SELECT ${COLUMNS} FROM user_redaction WHERE ended_at IS NULL ORDER BY asked_at, redaction_id LIMIT 1`,
  )
  return row && read(row)
}

export async function countOpenRedactions(reader: Reader): Promise<number> {
  const [row] = await reader.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM user_redaction WHERE ended_at IS NULL',
  )
  return row?.count ?? 0
}

/** Notes how far a redaction is. */
export async function noteRedacted(
  tx: Tx,
  { redaction_id, rooms, room_index, below_pos, in_room, redacted, withdrawn, failed }: UserRedactionRow,
): Promise<void> {
  await tx.query(
    `UPDATE user_redaction SET rooms = $2, room_index = $3, below_pos = $4, in_room = $5, redacted = $6, withdrawn = $7, failed = $8
     WHERE redaction_id = $1`,
    [redaction_id, rooms, room_index, below_pos, in_room, redacted, withdrawn, JSON.stringify(failed)],
  )
}

export async function endUserRedaction(tx: Tx, id: string, at: number, error: string | undefined): Promise<void> {
  await tx.query('UPDATE user_redaction SET ended_at = $2, error = $3 WHERE redaction_id = $1', [id, at, error ?? null])
}

/** Forgets some that ended before a time. Gives how many. */
export async function forgetUserRedactions(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM user_redaction WHERE redaction_id = ANY(ARRAY(
       SELECT redaction_id FROM user_redaction WHERE ended_at < $1 LIMIT $2)) RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}

/** The rooms that a user is or was in, or of these those that are named. */
export async function roomsToRedact(
  reader: Reader,
  userId: UserId,
  named: readonly RoomId[] | null,
): Promise<readonly number[]> {
  const rows = await reader.query<{ room_nid: number }>(
    `SELECT m.room_nid FROM matrix_user u JOIN room_member m USING (user_nid) JOIN room r ON r.room_nid = m.room_nid
     WHERE u.user_id = $1 AND m.membership NOT IN ('invite', 'knock') AND ($2::text[] IS NULL OR r.room_id = ANY($2))
     ORDER BY m.room_nid DESC`,
    [userId, named],
  )
  return rows.map(({ room_nid }) => room_nid)
}

export interface SaidEvent {
  readonly event_nid: number
  readonly event_id: EventId
  readonly type: string
  readonly origin_server_ts: number
}

/**
 * What a user has said in a stretch of a room's timeline and what is not redacted yet, newest first. It reads so many entries of the
 * timeline and no more.
 *
 * @returns `next`: the position below which to go on; undefined at the beginning of the room
 */
export async function saidBelow(
  reader: Reader,
  { roomNid, senderNid, below, scanned }: { roomNid: number; senderNid: number; below: number; scanned: number },
): Promise<{ readonly said: readonly SaidEvent[]; readonly next: number | undefined }> {
  const [window] = await reader.query<{ bottom: number | null; read: number }>(
    `SELECT min(room_pos) AS bottom, count(*)::int AS read FROM (
       SELECT room_pos FROM event WHERE room_nid = $1 AND room_pos < $2 ORDER BY room_pos DESC LIMIT $3) stretch`,
    [roomNid, below, scanned],
  )
  if (window?.bottom == null) return { said: [], next: undefined }
  const said = await reader.query<SaidEvent>(
    `SELECT event_nid, event_id, type, origin_server_ts FROM event
     WHERE room_nid = $1 AND room_pos < $2 AND room_pos >= $3 AND sender_nid = $4 AND redacted_by IS NULL AND standing IS NULL
     ORDER BY room_pos DESC`,
    [roomNid, below, window.bottom, senderNid],
  )
  return { said, next: window.read < scanned ? undefined : window.bottom }
}
