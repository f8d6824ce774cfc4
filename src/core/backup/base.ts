import type { BackedUpFile } from './manifest.ts'

/** A copy of the files of the embedded Postgres. With the log from then on it can be brought to any moment after it. */
export interface Base {
  readonly id: string
  readonly server_name: string
  readonly release: string
  /** Times in ms: it can be brought to no moment before its end. */
  readonly begun_at: number
  readonly ended_at: number
  /** Major version. */
  readonly postgres: number
  /** Which log is its own. */
  readonly system_identifier: string
  readonly first_wal: string
  readonly last_wal: string
  /** The content of `backup_label`, with which Postgres begins to recover. */
  readonly label: string
  /** Of its files, before they are compressed. */
  readonly bytes: number
  readonly files: readonly BackedUpFile[]
  readonly keys: BackedUpFile
  /** Which set of `media/` it goes with. */
  readonly media_set: string
  readonly recipients: readonly string[]
}
