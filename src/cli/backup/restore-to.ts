import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { Base } from '../../core/backup/base.ts'
import { readFile } from '../../domain/backup/backup-files.ts'
import type { BackupStore } from '../../domain/backup/backup-store.ts'
import { listBases, openBase, unpackBase } from '../../domain/backup/bases.ts'
import { readJournalsSince } from '../../domain/backup/journals.ts'
import { fetchLog, isLeftBehind } from '../../domain/backup/log-pieces.ts'
import { beginAfterRecovery, bringMediaBack } from '../../domain/backup/recovered.ts'
import { openUnseal, type Secrets } from '../../domain/backup/seal.ts'
import { BASE_SHARE_OF_BYTES } from '../../domain/limits/backups.ts'
import { incomingDirectory, openMediaStore } from '../../domain/media/open-store.ts'
import { createSpool } from '../../domain/media/spool.ts'
import { openDatabase } from '../../store/db/db.ts'
import { openRecovery, type Recovery } from '../../store/embedded/recover.ts'
import { EXIT, type Host, UsageError } from '../command.ts'
import { postgresDirectory } from '../database.ts'
import { ensureDataDirectory } from '../serve/data-directory.ts'
import { otherKeyFiles, writeKeyFiles } from './key-files.ts'
import { megabytes, progressLine } from './progress-line.ts'
import { runningElsewhere } from './restore-checks.ts'
import { type TrustValues, trustOf } from './trust.ts'

/** @returns ms; undefined for the end of the log */
export function readMoment(text: string): number | undefined {
  if (text === 'latest') return undefined
  const at = Date.parse(text)
  if (Number.isNaN(at) || !/^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/.test(text))
    throw new UsageError('--to takes a time with its zone, such as 2026-11-25T13:00:00Z, or latest')
  return at
}

/** Brings the embedded Postgres to a moment: the newest copy of its files from before it, and then its log. */
export async function restoreTo(
  parts: {
    readonly host: Host
    readonly config: Config
    readonly log: Logger
    readonly store: BackupStore
    readonly secrets: Secrets
    readonly values: TrustValues
    readonly evenIfRunning: boolean
    readonly withoutJournal: boolean
  },
  until: number | undefined,
): Promise<number> {
  const { host, config, log, store, secrets, values } = parts
  if (config.database.url !== undefined)
    throw new Error('--to is for the embedded Postgres, and database.url names another: use its own tools')
  const newest = await findBase(store, config, until)
  const unseal = await openUnseal(store, newest.recipients, secrets)
  const trust = await trustOf(config, secrets, values, unseal)
  const base = await openBase(store, newest.id, trust)
  const opened = () => openUnseal(store, ['anybody'], secrets)
  const journals = parts.withoutJournal ? [] : await readJournalsSince(store, base, unseal, opened, trust)
  const ended = journals.flatMap(({ entries }) => entries).filter(([kind]) => kind === 'session' || kind === 'device')
  const place = parts.evenIfRunning ? undefined : await runningElsewhere(host, config, log)
  if (place !== undefined)
    throw new Error(`a server named ${config.server_name} answers at ${place}: stop it first, or say --even-if-running`)
  const keys = JSON.parse((await readFile(store, unseal, base.keys)).toString('utf8')) as Record<string, string>
  await ensureDataDirectory(config.data_dir, host.uid)
  const [other] = await otherKeyFiles(config.data_dir, keys)
  if (other !== undefined) throw new Error(`${other} is another key than that of the backup: move it away`)
  const line = progressLine(host)
  const signal = host.stopSignal()
  const means = { store, unseal, trust, progress: line.progress, signal }
  const recovery = await openRecovery({ directory: postgresDirectory(config), uid: host.uid, log, database: 'hearth' })
  const media = openMediaStore({ config, log })
  try {
    await mustFit(recovery, base)
    const [wrong] = await fetchLog(means, base, recovery.log)
    if (until === undefined && wrong !== undefined)
      throw new Error(
        `the end of the log cannot be reached: ${wrong}. Name a time before that; if it is too late, you are told how far the log goes`,
      )
    await unpackBase(means, base, recovery.cluster)
    line.clear()
    const connection = await recovery.recover(until, wrong)
    const db = openDatabase({ connection, poolSize: 1 })
    try {
      const parts = { db, serverName: base.server_name, ended, now: Date.now(), random: { bytes: randomBytes } }
      const { last } = await beginAfterRecovery(parts)
      const spool = createSpool(incomingDirectory(config.data_dir))
      const missing = await bringMediaBack({ ...means, db, media: media.store, spool }, base.media_set)
      await writeKeyFiles(config.data_dir, keys)
      await db.close()
      await recovery.finish()
      host.print(
        `${base.server_name} is back as it was at ${until === undefined ? 'the end of the log' : new Date(until).toISOString()}. Its newest message is of ${last === undefined ? 'no time' : new Date(last).toISOString()}.`,
      )
      host.print('Start the server now, and make a backup: the log goes on from there.')
      if (missing > 0)
        host.complain(
          `${missing} media files are not at the place, as they were uploaded after the last backup, or are damaged there.`,
        )
      return EXIT.ok
    } finally {
      await db.close().catch(() => {})
    }
  } finally {
    line.clear()
    await media.close()
    await recovery.close()
  }
}

async function findBase(store: BackupStore, config: Config, until: number | undefined): Promise<Base> {
  const ids = (await listBases(store)).reverse()
  const instead = 'or restore a backup of before that time without --to: hearth backup list shows them'
  let earliest: number | undefined
  let isOnlyLeftBehind = false
  for (const id of ids) {
    const base = await openBase(store, id, undefined)
    if (until !== undefined && base.ended_at > until) {
      if (!(await isLeftBehind(store, base))) earliest = base.ended_at
      continue
    }
    if (base.server_name !== config.server_name)
      throw new Error(`the backups are of ${base.server_name}, but server_name is ${config.server_name}`)
    if (!(await isLeftBehind(store, base))) return base
    isOnlyLeftBehind = true
  }
  if (ids.length === 0) throw new Error(`${store.place} has no copy of the files of Postgres: see backup.point_in_time`)
  const next =
    earliest === undefined
      ? 'Make a backup, from which on moments can be reached again'
      : `Name a time from ${new Date(earliest).toISOString()} on`
  const why = isOnlyLeftBehind
    ? 'the log at the place no longer leads on from the copies of before that time, as an earlier restore went back to before them'
    : 'no copy of the files of Postgres is from before that time'
  throw new Error(`${store.place} cannot be restored to then: ${why}. ${next}, ${instead}`)
}

async function mustFit(recovery: Recovery, base: Base): Promise<void> {
  if (base.postgres !== recovery.postgres)
    throw new Error(
      `the copy is of Postgres ${base.postgres}, and this release brings Postgres ${recovery.postgres}: restore it with Hearth ${base.release}, or restore a backup without --to`,
    )
  const [wanted, free] = [base.bytes * BASE_SHARE_OF_BYTES, await recovery.free()]
  if (free < wanted)
    throw new Error(`the restore may take ${megabytes(wanted)}, and ${megabytes(free)} are left: make room`)
}
