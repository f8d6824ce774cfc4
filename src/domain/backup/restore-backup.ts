import type { Journal } from '../../core/backup/journal.ts'
import type { Manifest } from '../../core/backup/manifest.ts'
import { redo } from '../../store/backup/redo.ts'
import { beginEpoch } from '../../store/backup/restore-epochs.ts'
import type { RestoreTarget } from '../../store/backup/restore-target.ts'
import type { Undone } from '../../store/backup/undone.ts'
import type { Clock, Random } from '../clock.ts'
import { BACKUP_MEDIA_AT_ONCE } from '../limits/backups.ts'
import type { MediaStore } from '../media/media-store.ts'
import type { Spool } from '../media/spool.ts'
import { checkFile, mediaName, readFile } from './backup-files.ts'
import type { BackupStore } from './backup-store.ts'
import { mapInParallel } from './in-parallel.ts'
import type { Progress } from './make-backup.ts'
import { mediaIn, mediaOfSet } from './media-list.ts'
import { PLAIN, type Unseal } from './seal.ts'

export interface RestoreParts {
  readonly store: BackupStore
  readonly unseal: Unseal
  readonly target: RestoreTarget
  /** The folder of the migrations. */
  readonly migrations: string
  /** Applies the migrations that came after the backup. */
  readonly migrateOn: () => Promise<void>
  readonly media: MediaStore
  readonly spool: Spool
  /** What ended since the backup, oldest first. */
  readonly journals: readonly Journal<Undone>[]
  readonly writeKeys: (files: Readonly<Record<string, string>>) => Promise<void>
  readonly clock: Clock
  readonly random: Random
  readonly progress: Progress
  readonly signal: AbortSignal
}

const EPOCH_LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

export const newEpoch = (random: Random): string =>
  [...random.bytes(4)].map((byte) => EPOCH_LETTERS[byte % EPOCH_LETTERS.length]).join('')

/** What is wrong with a backup, as far as its files show without being opened; empty if nothing is. Writes nothing. */
export async function findDamage(
  { store, progress, signal }: Pick<RestoreParts, 'store' | 'progress' | 'signal'>,
  { database, keys, config, media }: Manifest,
): Promise<string[]> {
  const wrong: string[] = []
  const files = [...database.tables.flatMap((table) => table.files), keys, config, media.list]
  const of = files.reduce((sum, { bytes }) => sum + bytes, 0)
  let done = 0
  for (const file of files) {
    signal.throwIfAborted()
    const problem = await checkFile(store, file)
    if (problem !== undefined) wrong.push(problem)
    done += file.bytes
    progress('looking at the backup', done, of)
  }
  if (wrong.length > 0) return wrong
  const present = await mediaOfSet(store, media.set)
  const missing = new Set(media.missing)
  for (const { digest } of mediaIn((await readFile(store, PLAIN, media.list)).toString('latin1'))) {
    if (!present.has(digest) && !missing.has(digest)) wrong.push(`${mediaName(media.set, digest)} is missing`)
  }
  return wrong
}

export interface Restored {
  /** Media that are damaged in the backup, which are not brought back: they must not keep all the rest away. */
  readonly damaged: readonly string[]
  /** How much of what ended since the backup was ended again, by kind. */
  readonly redone: Readonly<Record<string, number>>
}

/**
 * Brings a backup back: the rows, the media, the keys, then a new epoch and what ended since. Each step may be repeated, so that a restore
 * goes on where another was killed. The database counts as whole, and a server starts on it, only after the last step.
 */
export async function restoreBackup(parts: RestoreParts, manifest: Manifest): Promise<Restored> {
  const { store, unseal, target, clock, random } = parts
  const { migrations, sequences, event_position, ledger_position } = manifest.database
  // If they cannot be read, the passphrase or key is another, and nothing has been written yet.
  const keys = JSON.parse((await readFile(store, unseal, manifest.keys)).toString('utf8')) as Record<string, string>
  await target.begin(manifest.id, parts.migrations, new Set(migrations.map(({ name }) => name)))
  await loadRows(parts, manifest)
  await makeIndexes(parts)
  await target.setSequences(sequences)
  const damaged = await restoreMedia(parts, manifest)
  await parts.writeKeys(keys)
  await parts.migrateOn()
  const epoch = newEpoch(random)
  const [now, redone] = [clock.now(), new Map<string, number>()]
  await target.finish(async (tx) => {
    await beginEpoch((text, values) => tx.query(text, values), {
      epoch,
      now,
      serverName: manifest.server_name,
      eventPosition: event_position,
      ledgerPosition: ledger_position,
    })
    for (const { entries } of parts.journals) {
      const counts = await redo(tx, entries, { now, eventPosition: event_position })
      for (const [kind, count] of Object.entries(counts)) redone.set(kind, (redone.get(kind) ?? 0) + count)
    }
  })
  return { damaged, redone: Object.fromEntries(redone) }
}

/** The next file is read while Postgres takes in the one before. */
async function loadRows(
  { store, unseal, target, progress, signal }: RestoreParts,
  { database }: Manifest,
): Promise<void> {
  const loaded = await target.loaded()
  const of = database.tables.flatMap(({ files }) => files).reduce((sum, { bytes }) => sum + bytes, 0)
  let done = 0
  let loading: Promise<unknown> = Promise.resolve()
  for (const table of database.tables) {
    for (const file of table.files) {
      signal.throwIfAborted()
      done += file.bytes
      if (loaded.has(file.name)) continue
      const rows = await readFile(store, unseal, file)
      await loading
      loading = target.load(table, file.name, rows)
      // Its failure is thrown where it is waited for.
      loading.catch(() => {})
      progress('database', done, of)
    }
  }
  await loading
}

async function makeIndexes({ target, progress, signal }: RestoreParts): Promise<void> {
  const left = await target.indexes()
  for (const [number, index] of left.entries()) {
    signal.throwIfAborted()
    await target.makeIndex(index)
    progress('indexes', number + 1, left.length)
  }
}

async function restoreMedia(parts: RestoreParts, { media: backedUp }: Manifest): Promise<string[]> {
  const { store, unseal, media, spool, progress, signal } = parts
  const list = (await readFile(store, PLAIN, backedUp.list)).toString('latin1')
  const missing = new Set(backedUp.missing)
  const damaged: string[] = []
  let done = 0
  await mapInParallel(mediaIn(list), BACKUP_MEDIA_AT_ONCE, async ({ digest, bytes }) => {
    signal.throwIfAborted()
    if (!missing.has(digest)) await restoreOne(digest, bytes)
    done += bytes
    progress('media', done, backedUp.bytes)
  })
  return damaged.sort()

  async function restoreOne(digest: string, bytes: number): Promise<void> {
    const present = await media.open(Buffer.from(digest, 'hex'))
    if (present !== undefined) return void present.destroy()
    const name = mediaName(backedUp.set, digest)
    const source = await store.open(name)
    if (source === undefined) throw new Error(`${name} is missing`)
    const opened = openedBy(unseal, source as AsyncIterable<Buffer>)
    const file = await spool.take(opened, Number.MAX_SAFE_INTEGER, bytes).catch((error: unknown) => {
      if (!(error instanceof DamageError)) throw error
      return undefined
    })
    if (file === undefined) return void damaged.push(name)
    try {
      if (file.digest.toString('hex') === digest) await media.put(file)
      else damaged.push(name)
    } finally {
      await file.discard()
    }
  }
}

/** A file was read whole, and is not what was encrypted. */
export class DamageError extends Error {}

/** Decrypts, and tells what cannot be decrypted from what cannot be read now. */
export async function* openedBy(unseal: Unseal, source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isUnread = false
  async function* read(): AsyncGenerator<Buffer> {
    try {
      yield* source
    } catch (error) {
      isUnread = true
      throw error
    }
  }
  try {
    yield* unseal.unseal(read())
  } catch (error) {
    throw isUnread ? error : new DamageError((error as Error).message)
  }
}
