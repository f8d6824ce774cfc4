import {
  BACKUP_FORMAT,
  type BackedUpRows,
  type BackedUpTable,
  backupId,
  type Manifest,
  writeManifest,
} from '../../core/backup/manifest.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { Snapshot, SnapshotTable } from '../../store/backup/snapshot.ts'
import type { Clock } from '../clock.ts'
import { BACKUP_MEDIA_AT_ONCE, BACKUP_PORTION_BYTES, BACKUP_SHARE_OF_TABLES } from '../limits/backups.ts'
import type { MediaStore } from '../media/media-store.ts'
import { claimPlace, folderOf, manifestName, sha256Of, writeFile } from './backup-files.ts'
import type { BackupStore } from './backup-store.ts'
import { joined, once } from './chunks.ts'
import { copyMedium } from './copy-medium.ts'
import { mapInParallel } from './in-parallel.ts'
import { mediaIn, mediaOfSet } from './media-list.ts'
import { atPace, type Pace } from './pace.ts'
import { portionsOf } from './portions.ts'
import { prove } from './proof.ts'
import { PLAIN, type Seal } from './seal.ts'

/** How far a backup, a check or a restore is: done and whole size, in bytes. */
export type Progress = (step: string, done: number, of: number) => void

export interface BackupParts {
  readonly store: BackupStore
  readonly seal: Seal
  readonly signingKey: SigningKey
  readonly serverName: string
  readonly release: string
  readonly clock: Clock
  readonly media: Pick<MediaStore, 'open'>
  readonly openSnapshot: () => Promise<Snapshot>
  /** Names and texts of the key files. */
  readonly keys: () => Promise<Readonly<Record<string, string>>>
  readonly config: { readonly text: string; readonly hasSecrets: boolean }
  /** Writes beside the backup before this one what ended up to now: from now on it is written beside this one. */
  readonly completeJournal: () => Promise<unknown>
  readonly progress: Progress
  readonly pace: Pace
  /** Aborted when the operator does not want to wait any more. */
  readonly signal: AbortSignal
}

/**
 * Makes a backup of a running server: first the database as of one moment, then keys and configuration, then the media that the database
 * refers to and the place does not have yet. The manifest is written last: without it a backup counts as none.
 *
 * @throws Error with what to do, before anything is written where that can be known: a place of other things, a newer backup, no space
 */
export async function makeBackup(parts: BackupParts): Promise<Manifest> {
  const { store, seal, clock, serverName } = parts
  const begun_at = clock.now()
  const id = backupId(begun_at)
  const snapshot = await parts.openSnapshot()
  try {
    if (snapshot.serverName !== serverName)
      throw new Error(`the database is that of "${snapshot.serverName}", and server_name is "${serverName}"`)
    await mustHaveRoom(store, snapshot)
    await claimPlace(store, serverName, begun_at)
    await store.tidy()
    const folder = folderOf(id)
    const { tables, textBytes } = await copyTables(parts, snapshot, `${folder}db/`)
    const list = await joined(await snapshot.storedContent())
    const sequences = await snapshot.sequences()
    // From here on the database need not keep what was deleted meanwhile.
    await snapshot.close()
    const keys = await writeFile(store, seal, `${folder}keys.json`, text(JSON.stringify(await parts.keys())))
    const config = await writeFile(store, seal, `${folder}config.yaml`, text(parts.config.text))
    const media = await copyMedia(parts, list.toString('latin1'))
    // Its names are those of the files, so there is nothing to hide; and who retires backups need not be able to read them.
    const listFile = await writeFile(store, PLAIN, `${folder}media.list`, once(list))
    const manifest: Omit<Manifest, 'proof' | 'sha256'> = {
      format: BACKUP_FORMAT,
      id,
      server_name: serverName,
      release: parts.release,
      begun_at,
      ended_at: clock.now(),
      database: {
        postgres: snapshot.postgres,
        bytes: snapshot.bytes,
        text_bytes: textBytes,
        migrations: snapshot.migrations,
        tables,
        sequences,
        event_position: snapshot.eventPosition,
        ledger_position: snapshot.ledgerPosition,
      },
      media: { set: seal.set, ...media, list: listFile },
      keys,
      config,
      has_secrets: parts.config.hasSecrets,
      recipients: seal.recipients,
    }
    const by = { mac: seal.mac, key: parts.signingKey }
    const whole = writeManifest(manifest, sha256Of, (proved) => prove('manifest', proved, by))
    await parts.completeJournal()
    await store.write(manifestName(id), text(whole))
    return JSON.parse(whole) as Manifest
  } finally {
    await snapshot.close().catch(() => {})
  }
}

async function mustHaveRoom(store: BackupStore, { tables }: Snapshot): Promise<void> {
  const free = await store.free()
  const wanted = tables.reduce((sum, { bytes }) => sum + bytes, 0) * BACKUP_SHARE_OF_TABLES
  if (free === undefined || free >= wanted) return
  const megabytes = (bytes: number) => `${Math.ceil(bytes / 1024 / 1024)} MiB`
  throw new Error(
    `${store.place} has ${megabytes(free)} left, and the backup may take ${megabytes(wanted)} and the new media: make room there, or name another place`,
  )
}

async function copyTables(
  { store, seal, progress, pace, signal }: BackupParts,
  snapshot: Snapshot,
  folder: string,
): Promise<{ tables: BackedUpTable[]; textBytes: number }> {
  const of = snapshot.tables.reduce((sum, { bytes }) => sum + bytes, 0)
  const tables: BackedUpTable[] = []
  let textBytes = 0
  let before = 0
  for (const table of snapshot.tables) {
    let read = 0
    const files = await copyTable(table, (bytes) => {
      signal.throwIfAborted()
      textBytes += bytes
      read += bytes
      progress('database', before + Math.min(read, table.bytes), of)
    })
    before += table.bytes
    const { name, columns } = table
    tables.push({ name, columns, rows: files.reduce((sum, { rows }) => sum + rows, 0), files })
  }
  progress('database', of, of)
  return { tables, textBytes }

  async function copyTable(table: SnapshotTable, copied: (bytes: number) => void): Promise<BackedUpRows[]> {
    const files: BackedUpRows[] = []
    for await (const portion of portionsOf(atPace(pace, await snapshot.copy(table)), BACKUP_PORTION_BYTES)) {
      const name = `${folder}${table.name}.${String(files.length + 1).padStart(5, '0')}`
      files.push({ ...(await writeFile(store, seal, name, portion.chunks)), rows: portion.lines })
      copied(portion.bytes)
    }
    return files
  }
}

const text = (content: string): AsyncIterable<Buffer> => once(Buffer.from(content))

async function copyMedia(
  { store, seal, media, progress, pace, signal }: BackupParts,
  list: string,
): Promise<{ files: number; bytes: number; missing: string[] }> {
  const present = await mediaOfSet(store, seal.set)
  const missing: string[] = []
  let of = 0
  let files = 0
  for (const { bytes } of mediaIn(list)) {
    of += bytes
    files++
  }
  let done = 0
  await mapInParallel(mediaIn(list), BACKUP_MEDIA_AT_ONCE, async ({ digest, bytes }) => {
    signal.throwIfAborted()
    if (!present.has(digest) && !(await copyMedium({ store, seal, media, pace }, digest))) missing.push(digest)
    done += bytes
    progress('media', done, of)
  })
  progress('media', of, of)
  return { files, bytes: of, missing: missing.sort() }
}
