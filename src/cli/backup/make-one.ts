import type { Logger } from 'pino'
import type { LoadedConfig } from '../../config/load.ts'
import { settingsYaml } from '../../config/render.ts'
import { readKeep } from '../../core/backup/retention.ts'
import type { BackupStore } from '../../domain/backup/backup-store.ts'
import { writeNewestJournal } from '../../domain/backup/journals.ts'
import { makeBackup } from '../../domain/backup/make-backup.ts'
import { type Activity, type Pace, startPace, UNHURRIED } from '../../domain/backup/pace.ts'
import { retireBackups } from '../../domain/backup/retire-backups.ts'
import { openSeal, type Secrets } from '../../domain/backup/seal.ts'
import { openMediaStore } from '../../domain/media/open-store.ts'
import { countTransactions } from '../../store/backup/activity.ts'
import { recordBackup } from '../../store/backup/backup-runs.ts'
import { lockBackups, openSnapshot } from '../../store/backup/snapshot.ts'
import { countSuccessors } from '../../store/cluster/nodes.ts'
import { type Database, openDatabase, type Reader } from '../../store/db/db.ts'
import { prepareDatabase } from '../../store/db/prepare.ts'
import { WRITER } from '../../store/db/writer-lock.ts'
import { EXIT, type Host } from '../command.ts'
import { borrowDatabase, MIGRATIONS } from '../database.ts'
import { ensureDataDirectory } from '../serve/data-directory.ts'
import { mustHaveSigningKey, readKeyFiles } from './key-files.ts'
import { openPointInTime } from './point-in-time.ts'
import { megabytes, progressLine } from './progress-line.ts'

/** Makes a backup, removes those that are not kept any more, and notes it in the database. */
export async function makeOne(parts: {
  readonly host: Host
  readonly loaded: LoadedConfig
  readonly log: Logger
  readonly store: BackupStore
  readonly secrets: Secrets
  readonly keep: string
  readonly withSecrets: boolean
}): Promise<number> {
  const { host, loaded, log, store, secrets, withSecrets } = parts
  const { config } = loaded
  host.giveWay()
  await ensureDataDirectory(config.data_dir, host.uid)
  const signingKey = await mustHaveSigningKey(config.data_dir)
  const database = await borrowDatabase(config, host.uid, log)
  const media = openMediaStore({ config, log })
  const line = progressLine(host)
  let lock: Awaited<ReturnType<typeof lockBackups>> | undefined
  let db: Database | undefined
  let pace: Pace = UNHURRIED
  try {
    await prepareDatabase(database.connection, MIGRATIONS, config.server_name)
    lock = await lockBackups(database.connection)
    db = openDatabase({ connection: database.connection, poolSize: 1 })
    const reader = db
    // A Postgres that was started for this has nobody else to answer.
    if (database.embedded === undefined) pace = startPace(() => activityOf(reader))
    const seal = await openSeal(store, secrets)
    const by = { store, seal, signingKey, serverName: config.server_name, release: host.version, clock: Date }
    const manifest = await makeBackup({
      ...by,
      completeJournal: () => writeNewestJournal({ ...by, db: reader }),
      media: media.store,
      async openSnapshot() {
        const snapshot = await openSnapshot(database.connection)
        if (config.database.url === undefined) host.giveWay(snapshot.backend)
        return snapshot
      },
      pace,
      keys: () => readKeyFiles(config.data_dir),
      config: { text: settingsYaml(loaded, withSecrets), hasSecrets: withSecrets },
      progress: line.progress,
      signal: host.stopSignal(),
    })
    line.clear()
    const files = manifest.database.tables.flatMap((table) => table.files)
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    const { id: backup_id, begun_at, ended_at } = manifest
    await db.tx((tx) => recordBackup(tx, { backup_id, place: store.place, begun_at, ended_at, bytes }))
    host.print(
      `Backup ${manifest.id} in ${store.place}: ${megabytes(bytes)} of the database, ${manifest.media.files} media files of ${megabytes(manifest.media.bytes)}${secured(manifest.recipients)}.`,
    )
    // The passphrase shows who made it, and whoever can read a backup without encryption has the key.
    if (secrets.passphrase === undefined && manifest.recipients.length > 0)
      host.print(
        `Signed by ${signingKey.publicKey}: keep this beside the secret key. A restore asks for it: --signed-by`,
      )
    const { missing } = manifest.media
    if (missing.length > 0)
      host.complain(`${missing.length} media files could not be read and are not in it, such as ${missing[0]}`)
    // It is made and noted, whatever is wrong with older ones: the schedule makes no other for them.
    const gone = await retireBackups(store, manifest.id, readKeep(parts.keep)).catch((error: Error) => {
      throw new Error(`the new backup is whole, but what is not kept could not be removed: ${error.message}`)
    })
    if (gone.length > 0) host.print(`Removed, as --keep says: ${gone.join(', ')}`)
    const inTime = await openPointInTime({
      ...by,
      host,
      config,
      connection: database.connection,
      progress: line.progress,
    })
    await inTime?.copyFiles(manifest.id, pace)
    line.clear()
    if (inTime) host.print('The files of Postgres are copied too: hearth restore --to TIME.')
    return EXIT.ok
  } finally {
    line.clear()
    await pace.stop()
    await db?.close()
    await lock?.release()
    await media.close()
    await database.stop()
  }
}

async function activityOf(reader: Reader): Promise<Activity> {
  const [ended, standingBy] = await Promise.all([countTransactions(reader), countSuccessors(reader, WRITER)])
  return { ended, standingBy }
}

const secured = (recipients: readonly string[]): string => (recipients.length === 0 ? ', not encrypted' : ', encrypted')
