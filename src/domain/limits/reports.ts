/** Characters of the reason that a report gives. */
export const MAX_REPORT_REASON_CHARS = 10_000
/** The newest reports of one user that are kept. */
export const MAX_REPORTS_PER_USER = 1_000
/** How long reports are kept. */
export const REPORTS_KEPT_MS = 365 * 24 * 60 * 60 * 1_000
/** Characters of a note or a decision of an operator, and notes of one report. */
export const MAX_NOTE_CHARS = 10_000
export const MAX_NOTES_PER_REPORT = 200
/** Characters of a reported event that are kept as it was. */
export const MAX_REPORTED_EVENT_CHARS = 8_192
