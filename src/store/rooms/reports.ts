import type { EventId, RoomId, UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: report, matrix_user

export type ReportKind = 'event' | 'room' | 'user'

export interface NewReport {
  readonly kind: ReportKind
  readonly reporterNid: number
  readonly receivedAt: number
  readonly reason: string | undefined
  readonly score?: number | undefined
  readonly roomNid?: number
  readonly roomId?: RoomId
  readonly eventId?: EventId
  /** The sender of the event, or the user who is reported. */
  readonly targetUser?: UserId
  /** The event as it is now; JSON. */
  readonly eventJson?: string | undefined
}

export interface ReportRow {
  readonly report_nid: number
  readonly received_at: number
  readonly reporter: UserId
  readonly reason: string | null
  readonly score: number | null
  readonly room_nid: number | null
  readonly room_id: RoomId | null
  readonly event_id: EventId | null
  readonly target_user: UserId | null
}

/** Keeps a report, and of all reports of its user the newest. @param most how many */
export async function insertReport(tx: Tx, report: NewReport, most: number): Promise<void> {
  const { kind, reporterNid, receivedAt, reason, score, roomNid, roomId, eventId, targetUser, eventJson } = report
  await tx.query(
    `INSERT INTO report (kind, reporter_nid, received_at, reason, score, room_nid, room_id, event_id, target_user, event_json)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      kind,
      reporterNid,
      receivedAt,
      ...[reason, score, roomNid, roomId, eventId, targetUser, eventJson].map((value) => value ?? null),
    ],
  )
  await tx.query(
    `DELETE FROM report WHERE report_nid = ANY(ARRAY(SELECT report_nid FROM report WHERE reporter_nid = $1
       ORDER BY report_nid DESC OFFSET $2))`,
    [reporterNid, most],
  )
}

export interface ReportsQuery {
  readonly kind: ReportKind
  readonly from: number
  readonly limit: number
  readonly isDescending: boolean
  /** Only those that contain these texts. */
  readonly reporter: string | undefined
  readonly roomId: string | undefined
  readonly targetUser: string | undefined
}

/** Of a report and its reporter, with where they are from. */
export const REPORT_COLUMNS = `report_nid, received_at, user_id AS reporter, reason, score, room_nid, room_id, event_id, target_user
  FROM report JOIN matrix_user ON user_nid = reporter_nid`

/** A page of reports, and how many there are. */
export async function listReports(
  reader: Reader,
  query: ReportsQuery,
): Promise<{ readonly rows: readonly ReportRow[]; readonly total: number }> {
  const { kind, from, limit, isDescending, reporter = null, roomId = null, targetUser = null } = query
  const chosen = `kind = $1 AND ($2::text IS NULL OR strpos(user_id, $2) > 0) AND ($3::text IS NULL OR strpos(room_id, $3) > 0)
    AND ($4::text IS NULL OR strpos(target_user, $4) > 0)`
  const filters = [kind, reporter, roomId, targetUser]
  const [rows, [count]] = await Promise.all([
    reader.query<ReportRow>(
      `SELECT ${REPORT_COLUMNS} WHERE ${chosen} ORDER BY report_nid ${isDescending ? 'DESC' : 'ASC'} OFFSET $5 LIMIT $6`,
      [...filters, from, limit],
    ),
    reader.query<{ total: number }>(
      `SELECT count(*)::int AS total FROM report JOIN matrix_user ON user_nid = reporter_nid WHERE ${chosen}`,
      filters,
    ),
  ])
  return { rows, total: count?.total ?? 0 }
}

export async function findReport(reader: Reader, kind: ReportKind, reportNid: number): Promise<ReportRow | undefined> {
  const [row] = await reader.query<ReportRow>(`SELECT ${REPORT_COLUMNS} WHERE kind = $1 AND report_nid = $2`, [
    kind,
    reportNid,
  ])
  return row
}

/** Removes a report. False if there is none. */
export async function deleteReport(tx: Tx, kind: ReportKind, reportNid: number): Promise<boolean> {
  const rows = await tx.query('DELETE FROM report WHERE kind = $1 AND report_nid = $2 RETURNING 1 AS one', [
    kind,
    reportNid,
  ])
  return rows.length > 0
}

/** Removes some reports from before a time, and gives how many. */
export async function forgetReports(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    'DELETE FROM report WHERE ctid = ANY(ARRAY(SELECT ctid FROM report WHERE received_at < $1 LIMIT $2)) RETURNING 1 AS one',
    [before, atMost],
  )
  return rows.length
}
