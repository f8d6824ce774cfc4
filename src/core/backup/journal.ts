import type { Proof } from './manifest.ts'

/** What ended after a backup, as lines of JSON below this header. It lies beside the backups, and is replaced by a longer one from time to time. */
export interface JournalHeader {
  readonly format: number
  readonly server_name: string
  /** The newest backup when it was written. */
  readonly backup_id: string
  /** The restore after which it was written; missing before the first one. Each has a journal of its own beside a backup. */
  readonly epoch?: string | undefined
  /** The release that wrote it. */
  readonly release: string
  /** Times in ms: all that ended between them is in it, unless `is_cut`. */
  readonly from: number
  readonly to: number
  readonly entries: number
  /** There was more than it may hold. */
  readonly is_cut: boolean
  /** Of all lines after the first: hex. */
  readonly sha256: string
}

export interface Journal<Entry> {
  readonly header: JournalHeader
  readonly proof: Proof
  readonly entries: readonly Entry[]
}

export const JOURNAL_FORMAT = 1

export function writeJournal<Entry>(
  header: Omit<JournalHeader, 'format' | 'entries' | 'sha256'>,
  entries: readonly Entry[],
  hash: (text: string) => string,
  prove: (text: string) => Proof,
): string {
  const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
  const whole: JournalHeader = { format: JOURNAL_FORMAT, ...header, entries: entries.length, sha256: hash(lines) }
  return `${JSON.stringify({ header: whole, proof: prove(JSON.stringify(whole)) })}\n${lines}`
}

/** @throws Error for a damaged one, and one of a newer form */
export function readJournal<Entry>(text: string, hash: (text: string) => string): Journal<Entry> {
  const end = text.indexOf('\n')
  const lines = text.slice(end + 1)
  const { header, proof } = JSON.parse(text.slice(0, end)) as { header: JournalHeader; proof: Proof }
  if (header.format > JOURNAL_FORMAT) throw new Error(`a newer Hearth wrote it (${String(header.release)})`)
  if (hash(lines) !== header.sha256) throw new Error('it was altered or damaged')
  const entries = lines.split('\n').filter((line) => line !== '')
  return { header, proof, entries: entries.map((line) => JSON.parse(line) as Entry) }
}
