import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { Journal } from '../../core/backup/journal.ts'
import type { Manifest } from '../../core/backup/manifest.ts'
import { readFile } from '../../domain/backup/backup-files.ts'
import type { BackupStore } from '../../domain/backup/backup-store.ts'
import { readJournalsSince } from '../../domain/backup/journals.ts'
import { findDamage, type Restored, restoreBackup } from '../../domain/backup/restore-backup.ts'
import { openUnseal, type Unseal } from '../../domain/backup/seal.ts'
import { incomingDirectory, openMediaStore } from '../../domain/media/open-store.ts'
import { createSpool } from '../../domain/media/spool.ts'
import { openRestoreTarget, type RestoreTarget } from '../../store/backup/restore-target.ts'
import type { Undone } from '../../store/backup/undone.ts'
import { migrate } from '../../store/db/migrate.ts'
import { CONFIG_OPTIONS, type Command, EXIT, type Host, readConfig, UsageError } from '../command.ts'
import { borrowDatabase, MIGRATIONS } from '../database.ts'
import { ensureDataDirectory } from '../serve/data-directory.ts'
import { createLog } from '../serve/log.ts'
import { otherKeyFiles, writeKeyFiles } from './key-files.ts'
import { openPlace, PLACE_OPTIONS, placeOf, secretsOf } from './place.ts'
import { megabytes, progressLine } from './progress-line.ts'
import { runningElsewhere, whyNoRoom, whyNotThisBackup, whyNotThisDatabase } from './restore-checks.ts'
import { openTrusted, TRUST_OPTIONS } from './trust.ts'

const OPTIONS = {
  ...CONFIG_OPTIONS,
  ...PLACE_OPTIONS,
  ...TRUST_OPTIONS,
  id: { type: 'string' },
  to: { type: 'string' },
  'even-if-running': { type: 'boolean' },
  'without-journal': { type: 'boolean' },
  'show-config': { type: 'boolean' },
} as const

export const restoreCommand: Command = {
  usage: `[PLACE] [--id ID] [--passphrase | --passphrase-file FILE | --identity-file FILE] [--signed-by KEY]... [--even-if-running]
       restore [PLACE] --to TIME | latest [--passphrase ...] [--signed-by KEY]... [--even-if-running]
       restore [PLACE] --show-config [--id ID]
       with [--config FILE] [--set KEY=VALUE]...

Brings a backup back into an empty database: the rows, media and signing keys. The server that starts on it takes part in its rooms
again: it fetches from other servers what they have of its lost events, and clients upload new keys. What ended since the backup (sessions,
accounts, passwords, messages, media) ends again, as far as it stands in the journal beside the backups.

  PLACE               a directory, or s3://bucket/prefix; else backup.place
  --id                not the newest backup, but this one; backup list shows them
  --to                the embedded Postgres as it was at a time, such as 2026-11-25T13:00:00Z, or at the end of its log. Of what ended
                      since, only sessions and devices end again. Needs backup.point_in_time
  --show-config       prints the configuration that the backup holds, and does nothing else
  --even-if-running   although a server of this name answers somewhere. Two of one name break rooms and encryption
  --without-journal   does not look at the journal: what ended since the backup is back, such as sessions that were logged out
  --passphrase        is asked for, or read from a file; --identity-file holds a secret key of age
  --signed-by         the public signing key of the server: with a secret key of age, nothing else tells who made the backup
  --even-if-unsigned  although nothing shows who made it, as with backups of early releases

A restore that was cut off goes on when it is run again. No server starts on half a database.`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true })
    const [named, ...rest] = positionals
    if (rest.length > 0) throw new UsageError(`"${rest[0]}" is not understood`)
    const { config } = readConfig(host, values)
    const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
    const store = await openPlace(placeOf(named, config), host, config, log)
    try {
      const secrets = await secretsOf(host, values, config)
      if (values.to !== undefined) {
        const evenIfRunning = values['even-if-running'] === true
        const withoutJournal = values['without-journal'] === true
        const { readMoment, restoreTo } = await import('./restore-to.ts')
        return await restoreTo(
          { host, config, log, store, secrets, values, evenIfRunning, withoutJournal },
          readMoment(values.to),
        )
      }
      const { manifest, unseal, trust } = await openTrusted(store, config, secrets, values)
      if (values['show-config']) {
        host.print((await readFile(store, unseal, manifest.config)).toString('utf8').trimEnd())
        return EXIT.ok
      }
      const opened = () => openUnseal(store, ['anybody'], secrets)
      const journals =
        values['without-journal'] === true ? [] : await readJournalsSince(store, manifest, unseal, opened, trust)
      return await bringBack(
        { host, config, log, store, unseal, journals },
        manifest,
        values['even-if-running'] === true,
      )
    } finally {
      await store.close()
    }
  },
}

interface Means {
  readonly host: Host
  readonly config: Config
  readonly log: Logger
  readonly store: BackupStore
  readonly unseal: Unseal
  readonly journals: readonly Journal<Undone>[]
}

/** Everything that can be known is looked at before anything is written. */
async function bringBack(means: Means, manifest: Manifest, evenIfRunning: boolean): Promise<number> {
  const { host, config, log, store, unseal, journals } = means
  mustNot(await whyNotThisBackup(manifest, config))
  const signal = host.stopSignal()
  const line = progressLine(host)
  const damage = await findDamage({ store, progress: line.progress, signal }, manifest).finally(line.clear)
  if (damage.length > 0) {
    for (const one of damage.slice(0, 20)) host.print(`  ${one}`)
    throw new Error(`the backup ${manifest.id} is not whole (${damage.length} findings): restore another one, see --id`)
  }
  const keys = JSON.parse((await readFile(store, unseal, manifest.keys)).toString('utf8')) as Record<string, string>
  await ensureDataDirectory(config.data_dir, host.uid)
  const [other] = await otherKeyFiles(config.data_dir, keys)
  if (other !== undefined) mustNot(`${other} is another key than that of the backup: move it away`)
  mustNot(await whyNoRoom(manifest, config))
  let restored: Restored = { damaged: [], redone: {} }
  const database = await borrowDatabase(config, host.uid, log)
  try {
    const target = await openRestoreTarget(database.connection)
    try {
      await prepareTarget(means, target, manifest, evenIfRunning)
      const migrateOn = async () => void (await migrate(database.connection, MIGRATIONS, {}))
      restored = await fill(means, target, manifest, { migrateOn, signal })
    } finally {
      await target.close()
    }
  } finally {
    await database.stop()
  }
  const { database: rows, media } = manifest
  host.print(
    `The backup ${manifest.id} of ${manifest.server_name} is back: ${megabytes(rows.text_bytes)} of rows, ${media.files} media files.\nStart the server now. What was written after ${new Date(manifest.begun_at).toISOString()} is fetched from other servers, as far as they have it.`,
  )
  reportJournals(host, journals, restored.redone)
  const { damaged } = restored
  for (const name of damaged.slice(0, 20)) host.complain(`  ${name}`)
  if (damaged.length > 0) host.complain(`${damaged.length} media files are damaged in the backup and are not back.`)
  return EXIT.ok
}

const KINDS: Readonly<Record<string, string>> = {
  session: 'sessions ended',
  device: 'devices removed',
  account: 'accounts set to what they were last (password, rights, bans, approval, validity, deactivation, erasure)',
  media: 'media files removed',
  quarantine: 'quarantines set',
  event: 'messages redacted',
  purge: 'removals of history begun',
  deletion: 'deletions of rooms begun',
  cross_signing: 'users given the cross-signing keys that they had last',
  key_backup: 'backups of keys removed',
  block: 'rooms blocked or set free',
}

function reportJournals(
  host: Host,
  journals: readonly Journal<Undone>[],
  redone: Readonly<Record<string, number>>,
): void {
  const last = journals.at(-1)?.header
  if (last === undefined) {
    host.print('There is no journal of what ended after it: sessions and accounts are as they were at that time.')
    return
  }
  const done = Object.entries(redone).filter(([, count]) => count > 0)
  host.print(`What ended since, up to ${new Date(last.to).toISOString()}, ended again:`)
  for (const [kind, count] of done) host.print(`  ${count} ${KINDS[kind]}`)
  if (done.length === 0) host.print('  nothing did')
  if (journals.some(({ header }) => header.is_cut)) host.complain('More ended than the journal holds.')
}

function mustNot(reason: string | undefined): void {
  if (reason !== undefined) throw new Error(reason)
}

async function prepareTarget(
  { host, config, log }: Means,
  target: RestoreTarget,
  { id }: Manifest,
  evenIfRunning: boolean,
): Promise<void> {
  const state = await target.state()
  mustNot(whyNotThisDatabase(state))
  const place = evenIfRunning ? undefined : await runningElsewhere(host, config, log)
  if (place !== undefined)
    mustNot(
      `a server named ${config.server_name} is running and answers at ${place}: stop it first, or say --even-if-running`,
    )
  if (state.kind !== 'begun') return
  if (state.backupId === id) return host.print('A restore of this backup was cut off. It goes on.')
  host.print(`A restore of another backup, ${state.backupId}, was cut off. What is there of it is removed.`)
  await target.clear()
}

async function fill(
  { host, config, log, store, unseal, journals }: Means,
  target: RestoreTarget,
  manifest: Manifest,
  { migrateOn, signal }: { readonly migrateOn: () => Promise<void>; readonly signal: AbortSignal },
): Promise<Restored> {
  const line = progressLine(host)
  const media = openMediaStore({ config, log })
  try {
    return await restoreBackup(
      {
        store,
        unseal,
        journals,
        target,
        migrations: MIGRATIONS,
        migrateOn,
        media: media.store,
        spool: createSpool(incomingDirectory(config.data_dir)),
        writeKeys: (files) => writeKeyFiles(config.data_dir, files),
        clock: Date,
        random: { bytes: randomBytes },
        progress: line.progress,
        signal,
      },
      manifest,
    )
  } finally {
    line.clear()
    await media.close()
  }
}
