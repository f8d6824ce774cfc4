import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { listBackups, openBackup } from '../../domain/backup/backup-files.ts'
import type { BackupStore } from '../../domain/backup/backup-store.ts'
import { copyMedium } from '../../domain/backup/copy-medium.ts'
import { UNHURRIED } from '../../domain/backup/pace.ts'
import { openSeal } from '../../domain/backup/seal.ts'
import { verifyBackup } from '../../domain/backup/verify-backup.ts'
import { BACKUP_ROOMS_VERIFIED } from '../../domain/limits/backups.ts'
import { openMediaStore } from '../../domain/media/open-store.ts'
import { roomsToVerify } from '../../store/backup/sample-rooms.ts'
import { openDatabase } from '../../store/db/db.ts'
import { EXIT, type Host } from '../command.ts'
import { borrowDatabase, isDatabaseAtHand } from '../database.ts'
import { verifyRoom } from '../rooms/room-verify.ts'
import { table } from '../table.ts'
import { megabytes, progressLine } from './progress-line.ts'
import type { OpenedBackup } from './trust.ts'

/** Prints the whole backups of a place, the oldest first, and what is wrong with those that cannot be used. */
export async function listPlace(host: Host, store: BackupStore, json: boolean): Promise<number> {
  const rows: {
    id: string
    server_name: string
    release: string
    database: number
    media: number
    encrypted: boolean
    signed: boolean
  }[] = []
  let wrong = 0
  for (const id of await listBackups(store)) {
    const manifest = await openBackup(store, id).catch((error: Error) => {
      wrong++
      host.complain(error.message)
    })
    if (!manifest) continue
    const { server_name, release, database, media, recipients, proof } = manifest
    const bytes = database.tables.flatMap(({ files }) => files).reduce((sum, file) => sum + file.bytes, 0)
    const [encrypted, signed] = [recipients.length > 0, proof !== undefined]
    rows.push({ id, server_name, release, database: bytes, media: media.bytes, encrypted, signed })
  }
  if (json) host.print(JSON.stringify(rows, undefined, 2))
  else if (rows.length === 0) host.print(`${store.place} holds no whole backup.`)
  else {
    const cells = rows.map(({ id, server_name, release, database, media, encrypted, signed }) => [
      ...[id, server_name, release, megabytes(database), megabytes(media)],
      [encrypted ? 'encrypted' : '', signed ? '' : 'not signed'].filter((word) => word !== '').join(', '),
    ])
    host.print(table([['id', 'server', 'release', 'database', 'media', ''], ...cells]))
  }
  return wrong === 0 ? EXIT.ok : EXIT.failure
}

/** Reads a backup back, and checks some rooms of the database where one is at hand. */
export async function verifyPlace(parts: {
  readonly host: Host
  readonly config: Config
  readonly log: Logger
  readonly store: BackupStore
  readonly opened: OpenedBackup
  /** Whether damaged media are replaced from the media of the server. */
  readonly repair: boolean
}): Promise<number> {
  const { host, config, log, store } = parts
  const { manifest, unseal } = parts.opened
  host.giveWay()
  const line = progressLine(host)
  let [wrong, mended] = [0, 0]
  // Who is to read it need not be here: it is encrypted for their public keys.
  const media = parts.repair ? openMediaStore({ config, log }) : undefined
  const seal = media && (await openSeal(store, { recipients: manifest.recipients }))
  const repair =
    media && seal && ((digest: string) => copyMedium({ store, seal, media: media.store, pace: UNHURRIED }, digest))
  const verifying = verifyBackup(
    {
      store,
      unseal,
      repair,
      mended(what) {
        mended++
        line.clear()
        host.print(`  ${what}: replaced`)
      },
      progress: line.progress,
      signal: host.stopSignal(),
      found(what) {
        wrong++
        line.clear()
        host.print(`  ${what}`)
      },
    },
    manifest,
  )
  await verifying.finally(() => media?.close())
  line.clear()
  const rows = manifest.database.tables.reduce((sum, table) => sum + table.rows, 0)
  const read = `${rows.toLocaleString('en')} rows of ${manifest.database.tables.length} tables, ${manifest.media.files.toLocaleString('en')} media files`
  host.print(`Backup ${manifest.id} of ${manifest.server_name}: ${read}.`)
  if (manifest.media.missing.length > 0)
    host.print(`${manifest.media.missing.length} media files were missing when it was made.`)
  if (mended > 0) host.print(`${mended} media file${mended === 1 ? '' : 's'} replaced from the media of the server.`)
  if (wrong > 0) {
    host.print(
      `${wrong} finding${wrong === 1 ? '' : 's'}: do not rely on it. Make another backup, and look after the disk.`,
    )
    return EXIT.failure
  }
  host.print(mended > 0 ? 'All of the rest is as it was written.' : 'All of it is as it was written.')
  return verifySomeRooms(host, config, log, manifest.server_name)
}

async function verifySomeRooms(host: Host, config: Config, log: Logger, serverName: string): Promise<number> {
  if (config.server_name !== serverName || !(await isDatabaseAtHand(config))) return EXIT.ok
  const database = await borrowDatabase(config, host.uid, log)
  const db = openDatabase({ connection: database.connection, poolSize: 1 })
  try {
    let code: number = EXIT.ok
    for (const nid of await roomsToVerify(db, BACKUP_ROOMS_VERIFIED)) {
      if ((await verifyRoom(host, config, db, nid)) !== EXIT.ok) code = EXIT.failure
    }
    return code
  } finally {
    await db.close()
    await database.stop()
  }
}
