import type { Reader, Tx } from '../db/db.ts'

// Table: backup_run

export interface BackupRun {
  readonly backup_id: string
  readonly place: string
  readonly begun_at: number
  readonly ended_at: number
  readonly bytes: number
}

/** Only the newest are of use: those before stay with their backups. */
const KEPT = 100

export async function recordBackup(tx: Tx, run: BackupRun): Promise<void> {
  const { backup_id, place, begun_at, ended_at, bytes } = run
  await tx.query(
    `INSERT INTO backup_run (backup_id, place, begun_at, ended_at, bytes) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
    [backup_id, place, begun_at, ended_at, bytes],
  )
  await tx.query(
    `DELETE FROM backup_run WHERE ended_at < (SELECT ended_at FROM backup_run ORDER BY ended_at DESC OFFSET ${KEPT} LIMIT 1)`,
  )
}

/** The backups that are remembered, the newest first. */
export function listBackups(reader: Reader): Promise<BackupRun[]> {
  return reader.query<BackupRun>(
    `SELECT backup_id, place, begun_at, ended_at, bytes FROM backup_run ORDER BY ended_at DESC LIMIT ${KEPT}`,
  )
}

/** The backup that ended last. */
export async function lastBackup(reader: Reader): Promise<BackupRun | undefined> {
  const [row] = await reader.query<BackupRun>(
    'SELECT backup_id, place, begun_at, ended_at, bytes FROM backup_run ORDER BY ended_at DESC LIMIT 1',
  )
  return row
}
