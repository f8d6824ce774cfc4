import type { Reader } from './db.ts'

// Tables: account, room, report, federation_destination, backup_run

export interface ServerSize {
  readonly database_bytes: number
  readonly users: number
  readonly rooms: number
  readonly open_reports: number
  readonly last_backup_at: number | null
}

/** How much this server holds. It counts rows and measures files: use a connection for long queries, and not often. */
export async function measureServer(reader: Reader): Promise<ServerSize> {
  const [row] = await reader.query<ServerSize>(
    `SELECT pg_database_size(current_database()) AS database_bytes,
       (SELECT count(*) FROM account WHERE deactivated_at IS NULL AND NOT is_guest) AS users,
       (SELECT count(*) FROM room) AS rooms,
       (SELECT count(*) FROM report WHERE decided_at IS NULL) AS open_reports,
       (SELECT max(ended_at) FROM backup_run) AS last_backup_at`,
    [],
  )
  return row!
}
