import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import type { Config } from '../../config/schema.ts'
import type { UserId } from '../../core/ids.ts'
import {
  type ArchivePart,
  createArchiveContent,
  FIRST_PART,
  type OpenMedia,
} from '../../domain/oauth/archive/archive-content.ts'
import { findUserNids } from '../../store/accounts/users.ts'
import type { Database } from '../../store/db/db.ts'
import { accountCreatedAt } from '../../store/oauth/own-events.ts'
import { type Archive, writeArchive } from '../archive/archive.ts'
import type { Host } from '../command.ts'
import { withDatabase } from '../database.ts'
import { openStore } from '../media/media-stores.ts'
import { createLog } from '../serve/log.ts'

/**
 * Writes what belongs to a user into one archive, for the user: the same files as the archive of the account page. Tokens are not in it, nor
 * what others wrote.
 */
export function exportUser(host: Host, config: Config, user: string, file: string | undefined): Promise<string> {
  const path = resolve(host.directory, file ?? `${user.replace(/[^A-Za-z0-9._-]/g, '_')}.tar.gz`)
  return withDatabase(host, config, async (db) => {
    const userNid = (await findUserNids(db, [user as UserId])).get(user as UserId)
    if (userNid === undefined || (await accountCreatedAt(db, userNid)) === undefined)
      throw new Error(`${user} has no account here`)
    const owner = { userNid, userId: user as UserId }
    const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
    const { store, close } = openStore(config, config.media.store, log)
    const counts = { files: 0, lost: 0 }
    const openMedia = async ({ digest }: Parameters<OpenMedia>[0]): Promise<Readable> => {
      const stream = await store.open(digest)
      counts[stream === undefined ? 'lost' : 'files']++
      if (stream === undefined) throw new Error('the media store does not have this file')
      return stream
    }
    try {
      await writeArchive(path, Date.now(), (archive) => addAll(db, owner, openMedia, archive))
    } finally {
      await close()
    }
    const lost = counts.lost === 0 ? '' : `; ${counts.lost} files are lost`
    return `${path}: what this server keeps of ${user}, with ${counts.files} files${lost}.`
  })
}

async function addAll(
  db: Database,
  owner: Parameters<ReturnType<typeof createArchiveContent>>[0],
  openMedia: OpenMedia,
  archive: Archive,
): Promise<void> {
  const partOf = createArchiveContent({ db, clock: Date, openMedia })
  for (let part: ArchivePart | null = FIRST_PART; part !== null; ) {
    const made = await partOf(owner, part)
    for await (const piece of made.pieces) await archive.push(piece)
    part = made.next
  }
}
