import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Base } from '../../core/backup/base.ts'
import { isSegment, placeOf, whyBroken } from '../../core/backup/log-place.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import { MAX_LOG_PIECE_BYTES } from '../limits/backups.ts'
import type { BackupStore } from './backup-store.ts'
import type { Progress } from './make-backup.ts'
import type { Trust } from './proof.ts'
import { readProved, writeProved } from './proved-files.ts'
import type { Seal, Unseal } from './seal.ts'

/** The log of Postgres in a place of backups: a file for each piece, below the number of the cluster that wrote it. */
const folderOf = (systemIdentifier: string): string => `log/${systemIdentifier}/`

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

async function lookAtNames(store: BackupStore, base: Base): Promise<ReturnType<typeof whyBroken>> {
  const names: string[] = []
  for await (const full of store.list(folderOf(base.system_identifier))) names.push(nameIn(full).name)
  return whyBroken(names, base.first_wal)
}

/** Whether the log went back to before a base, so that Postgres cannot go on from there. */
export async function isLeftBehind(store: BackupStore, base: Base): Promise<boolean> {
  return (await lookAtNames(store, base)) === 'left behind'
}

/** Why the log at the place does not lead from a base to its newest piece; undefined if it does. Looks at names only. */
export async function whyBrokenSince(store: BackupStore, base: Base): Promise<string | undefined> {
  const why = await lookAtNames(store, base)
  if (why === undefined) return undefined
  return why === 'left behind'
    ? `the log at the place went back to before the copy ${base.id}`
    : `the piece at ${why.missing} of the log is not at the place`
}

interface Piece {
  readonly name: string
  /** What it ends with in the store. */
  readonly ending: string
}

function nameIn(full: string): Piece {
  const [, name = '', ending = ''] = /([^/]+)\.gz(\.age)?$/.exec(full) ?? []
  return { name, ending }
}

/** The pieces of a log that a base needs, and those after them. */
async function piecesSince(store: BackupStore, base: Base): Promise<Piece[]> {
  const found: Piece[] = []
  for await (const full of store.list(folderOf(base.system_identifier))) {
    const piece = nameIn(full)
    if (!isSegment(piece.name) || placeOf(piece.name) >= placeOf(base.first_wal)) found.push(piece)
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Without it Postgres would go along another branch of the log, and say nothing. */
const isOfBranches = (name: string): boolean => name.endsWith('.history')

/**
 * Writes the log since a base into a directory, as Postgres reads it. A piece that cannot be used is left out: moments before it can be
 * reached all the same.
 *
 * @returns what is wrong with the pieces that cannot be used, and with a log that does not go on; empty if its end can be reached
 * @throws Error for a damaged or altered record of branches
 */
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
): Promise<string[]> {
  const { store, progress, signal } = parts
  const pieces = await piecesSince(store, base)
  const broken = await whyBrokenSince(store, base)
  const wrong = broken === undefined ? [] : [broken]
  for (const [count, piece] of pieces.entries()) {
    signal.throwIfAborted()
    try {
      await writeFile(join(directory, piece.name), await contentOf(parts, base, piece), { mode: 0o600 })
    } catch (error) {
      if (!(error instanceof UnusableError) || isOfBranches(piece.name)) throw error
      if (isSegment(piece.name)) wrong.push(error.message)
    }
    progress('log of Postgres', count + 1, pieces.length)
  }
  return wrong
}

/** A piece of the log is missing, damaged, or nobody knows who made it. */
class UnusableError extends Error {}

async function contentOf(
  { store, unseal, trust }: Pick<Parameters<typeof fetchLog>[0], 'store' | 'unseal' | 'trust'>,
  base: Base,
  { name, ending }: Piece,
): Promise<Buffer> {
  const wanted = { name: folderOf(base.system_identifier) + name, ending, maxBytes: MAX_LOG_PIECE_BYTES }
  const read = await readProved(store, unseal, 'log', wanted).catch((error: Error) => {
    throw new UnusableError(`the piece ${name} of the log cannot be read: ${error.message}`)
  })
  const why = trust && read.whyUntrusted(trust, base.recipients.length > 0)
  if (why !== undefined) throw new UnusableError(`the piece ${name} of the log cannot be trusted: ${why}`)
  return read.content
}

/** Removes the log that none of these bases needs. */
export async function pruneLog(store: BackupStore, bases: readonly Base[]): Promise<void> {
  const old: string[] = []
  for await (const full of store.list('log/')) {
    const [, system, file = ''] = full.split('/')
    const own = bases.filter((base) => base.system_identifier === system)
    const oldest = own.map((base) => placeOf(base.first_wal)).sort()[0]
    const segment = file.slice(0, 24)
    if (oldest === undefined || (isSegment(segment) && placeOf(segment) < oldest)) old.push(full)
  }
  for (const name of old) await store.remove(name)
}
