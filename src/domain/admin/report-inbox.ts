import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Database } from '../../store/db/db.ts'
import {
  addReportNote,
  decideReport,
  findInInbox,
  type InboxQuery,
  type InboxRow,
  listInbox,
  listReportNotes,
  reopenReport,
} from '../../store/rooms/report-inbox.ts'
import type { Clock } from '../clock.ts'
import { MAX_NOTE_CHARS, MAX_NOTES_PER_REPORT } from '../limits/reports.ts'
import { checkText } from '../text.ts'
import type { Operator } from './operator.ts'
import type { ReportDesk } from './report-desk.ts'

/** The reports of all kinds, until somebody decides about them. Functions throw `M_NOT_FOUND` for a report that is not there. */
export interface ReportInbox {
  list(query: InboxQuery): Promise<JsonObject>
  /** With its notes, and the event as it was when it was reported. */
  get(id: number): Promise<JsonObject>
  /**
   * Closes a report and says what was done about it. Of two operators at once, the first one decides.
   * @throws ProtocolError `M_UNKNOWN` (409) with who has decided before
   */
  decide(by: Operator, id: number, decision: string): Promise<void>
  /** @throws ProtocolError `M_UNKNOWN` (409) if it is open */
  reopen(id: number): Promise<void>
  /** @throws ProtocolError `M_TOO_LARGE` when it has too many notes */
  note(by: Operator, id: number, text: string): Promise<void>
}

export function createReportInbox({
  db,
  clock,
  desk,
}: {
  readonly db: Database
  readonly clock: Clock
  readonly desk: Pick<ReportDesk, 'entry'>
}): ReportInbox {
  async function found(id: number): Promise<InboxRow> {
    const row = await findInInbox(db, id)
    if (row) return row
    throw new ProtocolError('M_NOT_FOUND', 'There is no such report.')
  }

  async function view(row: InboxRow): Promise<JsonObject> {
    const { kind, decided_at, decided_by, decision } = row
    const decided = decided_at === null ? {} : { decided_ts: decided_at, decided_by, decision }
    return { ...(await desk.entry(kind, row)), kind, state: decided_at === null ? 'open' : 'decided', ...decided }
  }

  return {
    async list(query) {
      const { rows, total } = await listInbox(db, query)
      const reports: JsonObject[] = []
      for (const row of rows) reports.push(await view(row))
      const next = query.from + rows.length
      return { reports, total, ...(next < total && rows.length > 0 && { next_token: next }) }
    },
    async get(id) {
      const row = await found(id)
      const notes = await listReportNotes(db, id)
      const event = row.event_json === null ? null : (JSON.parse(row.event_json) as JsonObject)
      const shown = notes.map(({ at, author, text }) => ({ ts: at, author, text }))
      return { ...(await view(row)), notes: shown, event_json: event }
    },
    async decide(by, id, decision) {
      checkText('decision', decision, MAX_NOTE_CHARS)
      const made = { at: clock.now(), by: by.name, decision }
      if (await db.tx((tx) => decideReport(tx, id, made))) return
      const { decided_by: first, decision: before } = await found(id)
      const text = `${first ?? 'Somebody'} has decided about this report already: ${before ?? 'it is open again'}.`
      throw new ProtocolError('M_UNKNOWN', text, { status: 409 })
    },
    async reopen(id) {
      if (await db.tx((tx) => reopenReport(tx, id))) return
      await found(id)
      throw new ProtocolError('M_UNKNOWN', 'This report is open.', { status: 409 })
    },
    async note(by, id, text) {
      checkText('text', text, MAX_NOTE_CHARS)
      const note = { at: clock.now(), author: by.name, text }
      if (await db.tx((tx) => addReportNote(tx, id, note, MAX_NOTES_PER_REPORT))) return
      await found(id)
      throw new ProtocolError('M_TOO_LARGE', `A report has at most ${MAX_NOTES_PER_REPORT} notes.`)
    },
  }
}
