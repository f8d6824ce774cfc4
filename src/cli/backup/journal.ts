import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { claimPlace } from '../../domain/backup/backup-files.ts'
import type { BackupStore } from '../../domain/backup/backup-store.ts'
import { writeNewestJournal } from '../../domain/backup/journals.ts'
import { openSeal, type Secrets } from '../../domain/backup/seal.ts'
import { openDatabase } from '../../store/db/db.ts'
import { prepareDatabase } from '../../store/db/prepare.ts'
import { EXIT, type Host } from '../command.ts'
import { borrowDatabase, MIGRATIONS } from '../database.ts'
import { ensureDataDirectory } from '../serve/data-directory.ts'
import { mustHaveSigningKey } from './key-files.ts'
import { openPointInTime } from './point-in-time.ts'

/** Writes beside the newest backup what ended since. */
export async function journalPlace(parts: {
  readonly host: Host
  readonly config: Config
  readonly log: Logger
  readonly store: BackupStore
  readonly secrets: Secrets
}): Promise<number> {
  const { host, config, log, store, secrets } = parts
  host.giveWay()
  await ensureDataDirectory(config.data_dir, host.uid)
  const signingKey = await mustHaveSigningKey(config.data_dir)
  const database = await borrowDatabase(config, host.uid, log)
  try {
    await prepareDatabase(database.connection, MIGRATIONS, config.server_name)
    await claimPlace(store, config.server_name, Date.now())
    const db = openDatabase({ connection: database.connection, poolSize: 1 })
    try {
      const by = { store, signingKey, serverName: config.server_name, release: host.version, clock: Date, db }
      const seal = await openSeal(store, secrets)
      const written = await writeNewestJournal({ ...by, seal })
      host.print(
        written === undefined
          ? `${store.place} holds no whole backup yet: there is nothing to write beside.`
          : `Beside the backup ${written.backupId}: ${written.entries} things that ended since.`,
      )
      const { connection } = database
      const inTime = await openPointInTime({ host, config, store, seal, signingKey, connection, progress: () => {} })
      const why = written && (await inTime?.takeLog())
      if (why !== undefined)
        throw new Error(
          `the log of Postgres is broken off: ${why}. Until the next backup hearth restore --to goes to no moment after that`,
        )
      return EXIT.ok
    } finally {
      await db.close()
    }
  } finally {
    await database.stop()
  }
}
