import { mkdir, open, writeFile as writeLocal } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import type { Base } from '../../core/backup/base.ts'
import { type BackedUpFile, timeOfBackup } from '../../core/backup/manifest.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { BaseCopy, ClusterPiece } from '../../store/backup/base-copy.ts'
import type { Clock } from '../clock.ts'
import { BACKUP_PORTION_BYTES, BASES_KEPT, MAX_BACKUP_TEXT_BYTES } from '../limits/backups.ts'
import { readFile, writeFile } from './backup-files.ts'
import type { BackupStore } from './backup-store.ts'
import { once } from './chunks.ts'
import { pruneLog } from './log-pieces.ts'
import type { Progress } from './make-backup.ts'
import type { Pace } from './pace.ts'
import { portionsOf } from './portions.ts'
import type { Trust } from './proof.ts'
import { readProved, writeProved } from './proved-files.ts'
import { PLAIN, type Seal, type Unseal } from './seal.ts'

const FOLDER = 'bases/'
const manifestOf = (id: string): string => `${FOLDER}${id}/base.json`

/** @param awaitLog waits until a piece of the log is at the place, and all before it */
export async function makeBase(
  parts: {
    readonly store: BackupStore
    readonly seal: Seal
    readonly signingKey: SigningKey
    readonly serverName: string
    readonly release: string
    readonly clock: Clock
    readonly keys: () => Promise<Readonly<Record<string, string>>>
    readonly awaitLog: (lastWal: string) => Promise<void>
    readonly progress: Progress
    readonly pace: Pace
    readonly signal: AbortSignal
  },
  copy: BaseCopy,
  id: string,
  expectedBytes: number,
): Promise<Base> {
  const { store, seal, signingKey, clock, progress, pace, signal } = parts
  const begun_at = clock.now()
  const files: BackedUpFile[] = []
  let bytes = 0
  const portions = portionsOf(packed(copy.pieces(pace.take)), BACKUP_PORTION_BYTES, (piece) => piece.length)
  for await (const portion of portions) {
    signal.throwIfAborted()
    const name = `${FOLDER}${id}/files.${String(files.length + 1).padStart(5, '0')}`
    files.push(await writeFile(store, seal, name, portion.chunks))
    bytes += portion.bytes
    progress('files of Postgres', Math.min(bytes, expectedBytes), expectedBytes)
  }
  const { label, lastWal } = await copy.finish()
  const ended_at = clock.now()
  await parts.awaitLog(lastWal)
  const keys = await writeFile(
    store,
    seal,
    `${FOLDER}${id}/keys.json`,
    once(Buffer.from(JSON.stringify(await parts.keys()))),
  )
  const base: Base = {
    id,
    server_name: parts.serverName,
    release: parts.release,
    begun_at,
    ended_at,
    postgres: copy.postgres,
    system_identifier: copy.systemIdentifier,
    first_wal: copy.firstWal,
    last_wal: lastWal,
    label,
    bytes,
    files,
    keys,
    media_set: seal.set,
    recipients: seal.recipients,
  }
  // Not encrypted, so that what is old can be removed without a secret.
  const open = { ...PLAIN, mac: seal.mac }
  await writeProved(store, open, signingKey, 'base', manifestOf(id), Buffer.from(JSON.stringify(base)))
  return base
}

/** The ids of the whole bases of a place, oldest first. */
export async function listBases(store: BackupStore): Promise<string[]> {
  const ids: string[] = []
  for await (const name of store.list(FOLDER)) {
    const [, id = '', file] = name.split('/')
    if (file === 'base.json.gz' && timeOfBackup(id) !== undefined) ids.push(id)
  }
  return ids.sort()
}

/** @throws Error for one that is damaged, or that the reader must not believe */
export async function openBase(store: BackupStore, id: string, trust: Trust | undefined): Promise<Base> {
  const wanted = { name: manifestOf(id), ending: '', maxBytes: MAX_BACKUP_TEXT_BYTES }
  const { content, whyUntrusted } = await readProved(store, PLAIN, 'base', wanted)
  const base = JSON.parse(content.toString('utf8')) as Base
  if (base.id !== id) throw new Error(`${manifestOf(id)} is that of ${base.id}`)
  const isEncrypted = base.recipients.length > 0
  const why =
    trust === undefined
      ? undefined
      : trust.expectsEncryption && !isEncrypted
        ? 'it is not encrypted, although a passphrase or a secret key was given'
        : whyUntrusted(trust, isEncrypted)
  if (why !== undefined) throw new Error(`the copy ${id} of Postgres in ${store.place} cannot be trusted: ${why}`)
  return base
}

/** Writes the files of a base into a directory that does not exist yet. @throws Error for a damaged file, and a path out of the directory */
export async function unpackBase(
  {
    store,
    unseal,
    progress,
    signal,
  }: {
    readonly store: BackupStore
    readonly unseal: Unseal
    readonly progress: Progress
    readonly signal: AbortSignal
  },
  base: Base,
  directory: string,
): Promise<void> {
  await mkdir(directory, { recursive: false, mode: 0o700 })
  let done = 0
  for (const file of base.files) {
    signal.throwIfAborted()
    const portion = await readFile(store, unseal, file)
    for (const piece of unpacked(portion)) await place(directory, piece)
    done += portion.length
    progress('files of Postgres', done, base.bytes)
  }
  await writeLocal(join(directory, 'backup_label'), base.label)
}

async function place(directory: string, { path, at, bytes, isDirectory }: ClusterPiece): Promise<void> {
  if (normalize(path) !== path || path.startsWith('/') || path.split('/').includes('..'))
    throw new Error(`the copy of Postgres names ${path}, which is no file of it`)
  const full = join(directory, path)
  await mkdir(isDirectory ? full : dirname(full), { recursive: true, mode: 0o700 })
  if (isDirectory) return
  const file = await open(full, at === 0 ? 'w' : 'r+', 0o600)
  try {
    await file.write(bytes, 0, bytes.length, at)
  } finally {
    await file.close()
  }
}

interface PieceHead {
  readonly path: string
  readonly at: number
  readonly bytes: number
  readonly isDirectory: boolean
}

/** Each piece below a line that says what it is. */
async function* packed(pieces: AsyncIterable<ClusterPiece>): AsyncGenerator<Buffer> {
  for await (const { bytes, ...head } of pieces) {
    const line = `${JSON.stringify({ ...head, bytes: bytes.length } satisfies PieceHead)}\n`
    yield Buffer.concat([Buffer.from(line), bytes])
  }
}

function* unpacked(portion: Buffer): Generator<ClusterPiece> {
  for (let at = 0; at < portion.length; ) {
    const end = portion.indexOf('\n', at)
    const { bytes, ...head } = JSON.parse(portion.subarray(at, end).toString('utf8')) as PieceHead
    yield { ...head, bytes: portion.subarray(end + 1, end + 1 + bytes) }
    at = end + 1 + bytes
  }
}

/** Removes all but the newest bases, and the log that none of those needs. @returns the ids that were removed */
export async function pruneBases(store: BackupStore): Promise<string[]> {
  const whole = await listBases(store)
  const kept = whole.slice(-BASES_KEPT)
  const newest = kept.at(-1)
  if (newest === undefined) return []
  const names: string[] = []
  for await (const name of store.list(FOLDER)) names.push(name)
  const old = names.filter((name) => !kept.includes(name.split('/')[1] ?? '') && (name.split('/')[1] ?? '') <= newest)
  // What says that a base is whole goes first.
  const isManifest = (name: string) => name.endsWith('/base.json.gz')
  for (const name of old.filter(isManifest)) await store.removeLastingly(name)
  for (const name of old) if (!isManifest(name)) await store.remove(name)
  await pruneLog(store, await Promise.all(kept.map((id) => openBase(store, id, undefined))))
  return whole.filter((id) => !kept.includes(id))
}
