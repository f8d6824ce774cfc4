import type pg from 'pg'
import { openRestoreTarget, type RestoreTarget } from '../../store/backup/restore-target.ts'
import { openSnapshot, type Snapshot } from '../../store/backup/snapshot.ts'
import { foreignMigrations, planMigrations } from '../../store/db/migrate.ts'
import { BACKUP_PORTION_BYTES } from '../limits/backups.ts'
import { joined } from './chunks.ts'
import { portionsOf } from './portions.ts'

/**
 * Copies a database of Hearth into an empty one, of any later Postgres: the same way as by a backup and a restore, without what a restore does
 * because time has passed.
 *
 * @param report hears what is being copied
 * @throws Error if it is no database of this release, and if not all of it is there afterwards
 */
export async function copyDatabase(
  from: pg.ClientConfig,
  to: pg.ClientConfig,
  migrations: string,
  report: (step: string) => void,
): Promise<void> {
  const { applied } = await planMigrations(from, migrations)
  if (applied.length === 0) return
  const snapshot = await openSnapshot(from)
  try {
    const foreign = await foreignMigrations(migrations, snapshot.migrations)
    if (foreign.length > 0)
      throw new Error(`a newer Hearth migrated the database (${foreign.join(', ')}): start that release`)
    const target = await openRestoreTarget(to)
    try {
      await fill(snapshot, target, migrations, report)
    } finally {
      await target.close()
    }
  } finally {
    await snapshot.close()
  }
}

async function fill(
  snapshot: Snapshot,
  target: RestoreTarget,
  migrations: string,
  report: (step: string) => void,
): Promise<void> {
  await target.begin('a copy', migrations, new Set(snapshot.migrations.map(({ name }) => name)))
  const rowsOf = new Map<string, number>()
  for (const table of snapshot.tables) {
    report(`${table.name}, about ${Math.ceil(table.bytes / 1024 / 1024)} MiB`)
    let [rows, number] = [0, 0]
    for await (const portion of portionsOf(await snapshot.copy(table), BACKUP_PORTION_BYTES)) {
      const file = `${table.name}.${++number}`
      const bytes = await joined(portion.chunks)
      await target.load({ name: table.name, columns: table.columns, rows: 0, files: [] }, file, bytes)
      rows += portion.lines
    }
    rowsOf.set(table.name, rows)
  }
  for (const index of await target.indexes()) {
    report(index.sql)
    await target.makeIndex(index)
  }
  await target.setSequences(await snapshot.sequences())
  await target.finish(async (tx) => {
    for (const [name, rows] of rowsOf) {
      const [found] = await tx.query<{ rows: number }>(`SELECT count(*)::bigint AS rows FROM "${name}"`)
      if (Number(found!.rows) !== rows) throw new Error(`${name} has ${found!.rows} rows instead of ${rows}`)
    }
    // The words of messages are not copied: they are read from the events again.
    if (rowsOf.has('search_position')) await tx.query('UPDATE search_position SET event_nid = 0')
  })
}
