import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Config } from '../../config/schema.ts'
import type { MediaStore } from '../../domain/media/media-store.ts'
import { createSpool, type Spool } from '../../domain/media/spool.ts'
import type { Database } from '../../store/db/db.ts'
import { isWriterPresent, WRITER } from '../../store/db/writer-lock.ts'
import {
  type ContentRow,
  countContents,
  isContentKnown,
  noteStored,
  releaseUnknown,
  reserveUnknown,
} from '../../store/media/media-contents.ts'
import { withAdministration } from '../administration.ts'
import { progressLine } from '../backup/progress-line.ts'
import { EXIT, type Host, UsageError } from '../command.ts'
import { withDatabase } from '../database.ts'
import { ensureDataDirectory } from '../serve/data-directory.ts'
import { createLog } from '../serve/log.ts'
import { allContents, checkContent, eachContent, isIn, openStore, type StoreName } from './media-stores.ts'

const AT_ONCE = 4

type Outcome = 'copied' | 'already there' | 'missing' | 'damaged' | 'gone meanwhile'

interface Move {
  readonly db: Database
  readonly from: MediaStore
  readonly to: MediaStore
  readonly spool: Spool
  /** Whether the server uses the target, so that what it missed until now is there from here on. */
  readonly isTargetInUse: boolean
}

/**
 * Copies all files from one store to the other, and with `remove` then takes them out of the first. What is there already is passed over, so
 * an interrupted copy goes on. The server may run meanwhile.
 */
export async function moveMedia(host: Host, config: Config, to: StoreName, remove: boolean): Promise<number> {
  const from: StoreName = to === 's3' ? 'directory' : 's3'
  const isTargetInUse = config.media.store === to
  if (remove && (!isTargetInUse || (await storeOfServer(host, config)) === from))
    throw new UsageError(
      `the server still uses the files that --remove takes away: set media.store to ${to} and restart it first`,
    )
  await ensureDataDirectory(config.data_dir, host.uid)
  const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
  const source = openStore(config, from, log)
  const target = openStore(config, to, log)
  // On the file system of the files, since the store of files takes them over by their name.
  const spool = createSpool(join(config.data_dir, 'media', 'moving'))
  try {
    return await withDatabase(host, config, async (db) => {
      const move = { db, from: source.store, to: target.store, spool, isTargetInUse }
      const tally = await copyAll(host, move, remove)
      host.print(summary(tally, to, isTargetInUse))
      return (tally.get('missing') ?? 0) + (tally.get('damaged') ?? 0) === 0 ? EXIT.ok : EXIT.failure
    })
  } finally {
    await Promise.all([source.close(), target.close()])
  }
}

/** The store of the server that runs now, which may not be that of the configuration yet; undefined if none runs. */
async function storeOfServer(host: Host, config: Config): Promise<StoreName | undefined> {
  if (!(await withDatabase(host, config, (db) => isWriterPresent(db, WRITER)))) return undefined
  const { in_force }: { in_force: { key: string; value: unknown }[] } = await withAdministration(host, config, (api) =>
    api.call('GET', '/_hearth/admin/v1/config_changes'),
  )
  return in_force.find(({ key }) => key === 'media.store')?.value === 's3' ? 's3' : 'directory'
}

async function copyAll(host: Host, move: Move, remove: boolean): Promise<Map<Outcome, number>> {
  const { progress, clear } = progressLine(host)
  const { bytes: all } = await countContents(move.db)
  const tally = new Map<Outcome, number>()
  let bytes = 0
  await eachContent(allContents(move.db), AT_ONCE, async (content) => {
    const outcome = await copyOne(move, content)
    if (outcome !== undefined) tally.set(outcome, (tally.get(outcome) ?? 0) + 1)
    if (outcome === 'damaged' || outcome === 'missing') {
      clear()
      host.print(`${outcome}: ${content.digest.toString('hex')}`)
    } else if (remove && (await checkContent(move.to, content)) === 'good') await move.from.remove(content.digest)
    bytes += content.bytes
    progress('copying files', bytes, all)
  })
  clear()
  return tally
}

/** Undefined for content that no store has yet. */
async function copyOne(
  { db, from, to, spool, isTargetInUse }: Move,
  content: ContentRow,
): Promise<Outcome | undefined> {
  const isThere = await isIn(to, content)
  const outcome = isThere ? 'already there' : await copy(from, to, spool, content)
  if (outcome === 'missing' && !content.is_stored) return undefined
  if (outcome !== 'copied' && outcome !== 'already there') return outcome
  if (isTargetInUse && !content.is_stored) await db.tx((tx) => noteStored(tx, content.digest))
  // The server may have removed it while it was being copied.
  return (await removeUnknown(db, to, content)) ? 'gone meanwhile' : outcome
}

/** Removes a content from a store if the database does not know it. Whoever uploads the same bytes waits for the end of this, and then stores them again. */
export async function removeUnknown(
  db: Database,
  store: Pick<MediaStore, 'remove'>,
  content: Pick<ContentRow, 'digest' | 'bytes'>,
): Promise<boolean> {
  if (await isContentKnown(db, content.digest)) return false
  return db.tx(async (tx) => {
    if (!(await reserveUnknown(tx, content))) return false
    await store.remove(content.digest)
    await releaseUnknown(tx, content.digest)
    return true
  })
}

async function copy(from: MediaStore, to: MediaStore, spool: Spool, content: ContentRow): Promise<Outcome> {
  const stream: Readable | undefined = await from.open(content.digest)
  if (stream === undefined) return 'missing'
  const file = await spool.take(stream as AsyncIterable<Buffer>, Number.MAX_SAFE_INTEGER)
  try {
    if (!file.digest.equals(content.digest) || file.bytes !== content.bytes) return 'damaged'
    await to.put(file)
    return 'copied'
  } finally {
    await file.discard()
  }
}

function summary(tally: ReadonlyMap<Outcome, number>, to: StoreName, isTargetInUse: boolean): string {
  const parts = [...tally].map(([outcome, count]) => `${count} ${outcome}`)
  const counts = parts.length === 0 ? 'There are no files.' : `${parts.join(', ')}.`
  if (isTargetInUse) return counts
  return `${counts}\nNow set media.store to ${to}, restart the server, and run this again for what came in between.`
}
