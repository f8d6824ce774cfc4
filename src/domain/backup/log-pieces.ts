import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Base } from '../../core/backup/base.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import { MAX_LOG_PIECE_BYTES } from '../limits/backups.ts'
import type { BackupStore } from './backup-store.ts'
import type { Progress } from './make-backup.ts'
import type { Trust } from './proof.ts'
import { readProved, writeProved } from './proved-files.ts'
import type { Seal, Unseal } from './seal.ts'

/** The log of Postgres in a place of backups: a file for each piece, below the number of the cluster that wrote it. */
const folderOf = (systemIdentifier: string): string => `log/${systemIdentifier}/`
const SEGMENT = /^[0-9A-F]{24}$/

/** Takes pieces of the log that Postgres has put aside to the backups, oldest first, and removes them there. */
export async function takeLog(
  { store, seal, key }: { readonly store: BackupStore; readonly seal: Seal; readonly key: SigningKey },
  systemIdentifier: string,
  folder: string,
  names: readonly string[],
): Promise<void> {
  for (const name of names) {
    const content = await readFile(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      // Another process took it.
      if (error.code !== 'ENOENT') throw error
    })
    if (content === undefined) continue
    await writeProved(store, seal, key, 'log', folderOf(systemIdentifier) + name, content)
    await rm(join(folder, name), { force: true })
  }
}

export async function hasLogPiece(store: BackupStore, systemIdentifier: string, name: string): Promise<boolean> {
  for await (const _found of store.list(folderOf(systemIdentifier) + name)) return true
  return false
}

/** Names of the pieces of a log that a base needs, and of those after them; with what their names end with. */
async function piecesSince(store: BackupStore, base: Base): Promise<{ name: string; ending: string }[]> {
  const found: { name: string; ending: string }[] = []
  for await (const full of store.list(folderOf(base.system_identifier))) {
    const [, name = '', ending = ''] = /([^/]+)\.gz(\.age)?$/.exec(full) ?? []
    if (!SEGMENT.test(name) || placeOf(name) >= placeOf(base.first_wal)) found.push({ name, ending })
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The place of a segment in the log, whichever of its branches it is on. */
const placeOf = (segment: string): string => segment.slice(8)

/** Writes the log since a base into a directory, as Postgres reads it. Gives how many pieces there are. @throws Error for a damaged or altered one */
export async function fetchLog(
  parts: {
    readonly store: BackupStore
    readonly unseal: Unseal
    readonly trust: Trust | undefined
    readonly progress: Progress
    readonly signal: AbortSignal
  },
  base: Base,
  directory: string,
): Promise<number> {
  const { store, unseal, trust, progress, signal } = parts
  const pieces = await piecesSince(store, base)
  for (const [count, { name, ending }] of pieces.entries()) {
    signal.throwIfAborted()
    const wanted = { name: folderOf(base.system_identifier) + name, ending, maxBytes: MAX_LOG_PIECE_BYTES }
    const { content, whyUntrusted } = await readProved(store, unseal, 'log', wanted)
    const why = trust && whyUntrusted(trust, base.recipients.length > 0)
    if (why !== undefined) throw new Error(`the piece ${name} of the log cannot be trusted: ${why}`)
    await writeFile(join(directory, name), content, { mode: 0o600 })
    progress('log of Postgres', count + 1, pieces.length)
  }
  return pieces.length
}

/** Removes the log that none of these bases needs. */
export async function pruneLog(store: BackupStore, bases: readonly Base[]): Promise<void> {
  const old: string[] = []
  for await (const full of store.list('log/')) {
    const [, system, file = ''] = full.split('/')
    const own = bases.filter((base) => base.system_identifier === system)
    const oldest = own.map((base) => placeOf(base.first_wal)).sort()[0]
    const segment = file.slice(0, 24)
    if (oldest === undefined || (SEGMENT.test(segment) && placeOf(segment) < oldest)) old.push(full)
  }
  for (const name of old) await store.remove(name)
}
