import type { Reader, Tx } from '../db/db.ts'
import { REPORT_COLUMNS, type ReportKind, type ReportRow } from './reports.ts'

// Tables: report, report_note, matrix_user

export interface InboxRow extends ReportRow {
  readonly kind: ReportKind
  /** Null while it is open. */
  readonly decided_at: number | null
  readonly decided_by: string | null
  readonly decision: string | null
  /** The event as it was when it was reported. */
  readonly event_json: string | null
}

export interface InboxQuery {
  readonly isOpen: boolean | undefined
  readonly kind: ReportKind | undefined
  readonly from: number
  readonly limit: number
  readonly isDescending: boolean
}

const COLUMNS = `kind, decided_at, decided_by, decision, event_json, ${REPORT_COLUMNS}`
const CHOSEN = `($1::boolean IS NULL OR (decided_at IS NULL) = $1) AND ($2::text IS NULL OR kind = $2)`

/** A page of the reports of all kinds, and how many there are. */
export async function listInbox(
  reader: Reader,
  { isOpen, kind, from, limit, isDescending }: InboxQuery,
): Promise<{ readonly rows: readonly InboxRow[]; readonly total: number }> {
  const filters = [isOpen ?? null, kind ?? null]
  const [rows, [count]] = await Promise.all([
    reader.query<InboxRow>(
      `SELECT ${COLUMNS} WHERE ${CHOSEN} ORDER BY report_nid ${isDescending ? 'DESC' : 'ASC'} OFFSET $3 LIMIT $4`,
      [...filters, from, limit],
    ),
    reader.query<{ total: number }>(`SELECT count(*)::int AS total FROM report WHERE ${CHOSEN}`, filters),
  ])
  return { rows, total: count?.total ?? 0 }
}

export async function findInInbox(reader: Reader, reportNid: number): Promise<InboxRow | undefined> {
  const [row] = await reader.query<InboxRow>(`SELECT ${COLUMNS} WHERE report_nid = $1`, [reportNid])
  return row
}

/** Decides an open report. False if it is decided already, or gone. */
export async function decideReport(
  tx: Tx,
  reportNid: number,
  { at, by, decision }: { readonly at: number; readonly by: string; readonly decision: string },
): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE report SET decided_at = $2, decided_by = $3, decision = $4
     WHERE report_nid = $1 AND decided_at IS NULL RETURNING 1 AS one`,
    [reportNid, at, by, decision],
  )
  return rows.length > 0
}

/** Opens a decided report again. False if it is open, or gone. */
export async function reopenReport(tx: Tx, reportNid: number): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE report SET decided_at = NULL, decided_by = NULL, decision = NULL
     WHERE report_nid = $1 AND decided_at IS NOT NULL RETURNING 1 AS one`,
    [reportNid],
  )
  return rows.length > 0
}

export interface ReportNote {
  readonly at: number
  readonly author: string
  readonly text: string
}

/** Adds a note, unless the report has so many, or is gone. */
export async function addReportNote(tx: Tx, reportNid: number, note: ReportNote, most: number): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO report_note (report_nid, at, author, text)
     SELECT report_nid, $2, $3, $4 FROM report WHERE report_nid = $1
       AND (SELECT count(*) FROM report_note n WHERE n.report_nid = $1) < $5 RETURNING 1 AS one`,
    [reportNid, note.at, note.author, note.text, most],
  )
  return rows.length > 0
}

export function listReportNotes(reader: Reader, reportNid: number): Promise<ReportNote[]> {
  return reader.query<ReportNote>('SELECT at, author, text FROM report_note WHERE report_nid = $1 ORDER BY note_nid', [
    reportNid,
  ])
}
