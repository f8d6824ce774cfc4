import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGzip, gunzip } from 'node:zlib'
import {
  type BackedUpFile,
  type Manifest,
  ManifestError,
  readManifest,
  timeOfBackup,
} from '../../core/backup/manifest.ts'
import { isObject } from '../../core/json.ts'
import { BACKUP_PIECE_BYTES, MAX_BACKUP_PORTION_BYTES, MAX_BACKUP_TEXT_BYTES } from '../limits/backups.ts'
import { type BackupStore, readWhole } from './backup-store.ts'
import { inPieces, joined, once } from './chunks.ts'
import { KEY_FILE, type Seal, type Unseal } from './seal.ts'

/** Marks a place as one for backups, and says of which server. */
const MARK_FILE = 'hearth-backups.json'
const MANIFEST = 'manifest.json'
/** The server reads while it compresses, so speed matters more than size. */
const LEVEL = 1

const expand = promisify(gunzip)

export const sha256Of = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')

export const folderOf = (id: string): string => `backups/${id}/`

export const manifestName = (id: string): string => `${folderOf(id)}${MANIFEST}`

/** Two levels, so that no folder holds too many. */
export const mediaName = (set: string, digest: string): string => `media/${set}/${digest.slice(0, 2)}/${digest}`

/** Compresses, encrypts and writes a file, piece by piece. */
export async function writeFile(
  store: BackupStore,
  seal: Seal,
  name: string,
  content: AsyncIterable<Buffer>,
): Promise<BackedUpFile> {
  const full = `${name}.gz${seal.ending}`
  return { name: full, ...(await store.write(full, seal.seal(compressed(content)))) }
}

async function* compressed(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gzip = createGzip({ level: LEVEL })
  const feeding = pipeline(inPieces(content, BACKUP_PIECE_BYTES), gzip)
  // Its failure is one of what is read, too.
  feeding.catch(() => {})
  yield* gzip as AsyncIterable<Buffer>
  await feeding
}

/** What is wrong with a file as it is stored; undefined if nothing is. */
export async function checkFile(
  store: BackupStore,
  { name, bytes, sha256 }: BackedUpFile,
): Promise<string | undefined> {
  const stream = await store.open(name)
  if (stream === undefined) return `${name} is missing`
  const hash = createHash('sha256')
  let found = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    hash.update(chunk)
    found += chunk.length
  }
  if (found !== bytes) return `${name} has ${found} bytes instead of ${bytes}`
  return hash.digest('hex') === sha256 ? undefined : `${name} was altered or damaged`
}

/** A file of a backup as it was before it was encrypted and compressed. @throws Error with what is wrong with it */
export async function readFile(store: BackupStore, unseal: Unseal, file: BackedUpFile): Promise<Buffer> {
  const stored = await readWhole(store, file.name, file.bytes)
  if (stored === undefined) throw new Error(`${file.name} is missing`)
  if (stored.length !== file.bytes) throw new Error(`${file.name} has ${stored.length} bytes instead of ${file.bytes}`)
  if (sha256Of(stored) !== file.sha256) throw new Error(`${file.name} was altered or damaged`)
  return expand(await joined(unseal.unseal(once(stored))), { maxOutputLength: MAX_BACKUP_PORTION_BYTES })
}

/** The whole backups in a store, the oldest first. */
export async function listBackups(store: BackupStore): Promise<string[]> {
  const ids: string[] = []
  for await (const name of store.list('backups/')) {
    const [, id = '', file] = name.split('/')
    if (file === MANIFEST && timeOfBackup(id) !== undefined) ids.push(id)
  }
  return ids.sort()
}

/** @param id the newest whole backup without it @throws Error with what is wrong */
export async function openBackup(store: BackupStore, id?: string): Promise<Manifest> {
  await readMark(store)
  const ids = await listBackups(store)
  const wanted = id ?? ids.at(-1)
  if (wanted === undefined) throw new Error(`${store.place} holds no whole backup`)
  const text = ids.includes(wanted) && (await readWhole(store, manifestName(wanted), MAX_BACKUP_TEXT_BYTES))
  if (!text) throw new Error(`${store.place} holds no whole backup ${wanted}; it has: ${ids.join(', ') || 'none'}`)
  try {
    const manifest = readManifest(text.toString('utf8'), sha256Of)
    if (manifest.id !== wanted) throw new ManifestError(`its manifest is that of ${manifest.id}`)
    return manifest
  } catch (error) {
    throw new Error(`the backup ${wanted} in ${store.place} cannot be used: ${(error as Error).message}`)
  }
}

interface Mark {
  readonly server_name: string
}

async function readMark(store: BackupStore): Promise<Mark | undefined> {
  const text = await readWhole(store, MARK_FILE, MAX_BACKUP_TEXT_BYTES)
  if (text === undefined) {
    for await (const name of store.list('')) {
      // Left by a first backup that was killed before it wrote anything else.
      if (name === KEY_FILE) continue
      throw new Error(
        `${store.place} holds other things than backups of Hearth, such as ${name}: name a place of its own`,
      )
    }
    return undefined
  }
  const value = JSON.parse(text.toString('utf8')) as Mark
  if (!isObject(value as never) || typeof value.server_name !== 'string')
    throw new Error(`${MARK_FILE} in ${store.place} is damaged`)
  return value
}

/**
 * Makes sure that a place is for backups of this server, and marks an empty one.
 * @throws Error if it is a place of other things or another server, or holds a backup of a later time
 */
export async function claimPlace(store: BackupStore, serverName: string, now: number): Promise<void> {
  const mark = await readMark(store)
  if (mark === undefined) {
    await store.write(MARK_FILE, once(Buffer.from(`${JSON.stringify({ server_name: serverName })}\n`)))
    return
  }
  if (mark.server_name !== serverName)
    throw new Error(
      `${store.place} holds backups of ${mark.server_name}: name another place for those of ${serverName}`,
    )
  const newest = (await listBackups(store)).at(-1)
  if (newest !== undefined && timeOfBackup(newest)! >= now)
    throw new Error(
      `${store.place} already holds a newer backup, ${newest}: the clock of this machine is behind, or another server of this name is in use. Set the clock, or name another place`,
    )
}
