import { createHash } from 'node:crypto'
import type { Manifest } from '../../core/backup/manifest.ts'
import { BACKUP_MEDIA_AT_ONCE } from '../limits/backups.ts'
import { mediaName, readFile } from './backup-files.ts'
import type { BackupStore } from './backup-store.ts'
import { mapInParallel } from './in-parallel.ts'
import type { Progress } from './make-backup.ts'
import { mediaIn } from './media-list.ts'
import { countLines } from './portions.ts'
import { PLAIN, type Unseal } from './seal.ts'

export interface VerifyParts {
  readonly store: BackupStore
  readonly unseal: Unseal
  readonly progress: Progress
  readonly signal: AbortSignal
  /** Puts a good copy in place of a damaged or missing medium; false where there is none. */
  readonly repair?: ((digest: string) => Promise<boolean>) | undefined
  /** Called for each thing that was wrong and is mended. */
  mended(what: string): void
  /** Called for each thing that is wrong. */
  found(what: string): void
}

/** Reads a whole backup back: every file is decrypted, expanded and held against its hash, and the rows are counted. */
export async function verifyBackup(parts: VerifyParts, manifest: Manifest): Promise<void> {
  const { store, unseal, progress, signal, found } = parts
  const { tables } = manifest.database
  const files = tables.flatMap(({ files }) => files)
  const of = files.reduce((sum, { bytes }) => sum + bytes, 0)
  let done = 0
  for (const { name, rows, files } of tables) {
    let counted = 0
    for (const file of files) {
      signal.throwIfAborted()
      const bytes = await orFound(readFile(store, unseal, file))
      const inFile = bytes === undefined ? 0 : countLines(bytes)
      if (bytes !== undefined && inFile !== file.rows) found(`${file.name} has ${inFile} rows instead of ${file.rows}`)
      counted += bytes === undefined ? file.rows : inFile
      done += file.bytes
      progress('database', done, of)
    }
    if (counted !== rows) found(`${name} has ${counted} rows instead of ${rows}`)
  }
  for (const file of [manifest.keys, manifest.config]) await orFound(readFile(store, unseal, file))
  const list = await orFound(readFile(store, PLAIN, manifest.media.list))
  if (list !== undefined) await verifyMedia(parts, manifest, list.toString('latin1'))

  async function orFound(reading: Promise<Buffer>): Promise<Buffer | undefined> {
    return reading.catch((error: unknown) => {
      found((error as Error).message)
      return undefined
    })
  }
}

async function verifyMedia(parts: VerifyParts, { media }: Manifest, list: string): Promise<void> {
  const { store, unseal, progress, signal, found, mended, repair } = parts
  const missing = new Set(media.missing)
  let files = 0
  let done = 0
  await mapInParallel(mediaIn(list), BACKUP_MEDIA_AT_ONCE, async ({ digest, bytes }) => {
    signal.throwIfAborted()
    files++
    if (!missing.has(digest)) {
      const name = mediaName(media.set, digest)
      const wrong = await wrongWith(store, unseal, name, digest).catch((error: unknown) => (error as Error).message)
      if (wrong !== undefined && (await repair?.(digest))) mended(`${name} ${wrong}`)
      else if (wrong !== undefined) found(`${name} ${wrong}`)
    }
    done += bytes
    progress('media', done, media.bytes)
  })
  if (files !== media.files) found(`the list of media has ${files} files instead of ${media.files}`)
}

async function wrongWith(
  store: BackupStore,
  unseal: Unseal,
  name: string,
  digest: string,
): Promise<string | undefined> {
  const stream = await store.open(name)
  if (stream === undefined) return 'is missing'
  const hash = createHash('sha256')
  for await (const chunk of unseal.unseal(stream as AsyncIterable<Buffer>)) hash.update(chunk)
  return hash.digest('hex') === digest ? undefined : 'was altered or damaged'
}
