import type { Config } from '../../config/schema.ts'
import type { Database } from '../../store/db/db.ts'
import {
  avatarUris,
  deleteMedia,
  expiredMedia,
  forgetContent,
  forgetPreviews,
  holdReleased,
  releaseContent,
  unseenLocalMedia,
  unseenRemoteMedia,
} from '../../store/media/media-sweep.ts'
import type { Clock } from '../clock.ts'
import { MAX_MEDIA_SWEPT_AT_ONCE } from '../limits.ts'
import type { MediaStore } from './media-store.ts'
import type { Spool } from './spool.ts'

/** Removes media that nobody will look at again, then the bytes that nothing refers to. It bears being ended anywhere. */
export interface Sweep {
  /** Everything that is due. Gives how many files went, and how much content. */
  round(): Promise<{ readonly media: number; readonly contents: number }>
  /** Removes content that nothing refers to any more, unless somebody wanted it a moment ago. Gives how many. */
  contents(): Promise<number>
  /** Removes files of other servers that nobody looked at since a time. Gives how many. */
  remoteUnseenSince(before: number): Promise<number>
}

/** What is on its way in is not content that nothing refers to, nor a file that was left behind. */
const GRACE_MS = 60 * 60 * 1000
const DAY_MS = 24 * 60 * 60 * 1000

export function createSweep(deps: {
  readonly config: Pick<Config, 'server_name' | 'media'>
  readonly db: Database
  readonly clock: Clock
  readonly store: MediaStore
  readonly spool: Spool
}): Sweep {
  const { config, db, clock, store, spool } = deps
  const { keep_local_days, keep_remote_days } = config.media
  const some = MAX_MEDIA_SWEPT_AT_ONCE
  /** It reads all rooms for what must stay, so not every hour. */
  let nextLocalAt = 0

  async function removeAll(find: () => Promise<number[]>): Promise<number> {
    let total = 0
    for (let found = await find(); found.length > 0; found = await find()) {
      const batch = found
      total += (await db.tx((tx) => deleteMedia(tx, batch))).length
      if (found.length < some) break
    }
    return total
  }

  async function contents(): Promise<number> {
    const before = clock.now() - GRACE_MS
    let total = 0
    for (;;) {
      const released = await db.tx((tx) => releaseContent(tx, before, some))
      for (const digest of released) if (await removeContent(digest, before)) total += 1
      if (released.length === 0) return total
    }
  }

  /** Whoever brings the same bytes meanwhile waits for the end of this, and then brings them anew. */
  function removeContent(digest: Buffer, before: number): Promise<boolean> {
    return db.tx(async (tx) => {
      if (!(await holdReleased(tx, digest, before))) return false
      await store.remove(digest)
      await forgetContent(tx, digest)
      return true
    })
  }

  /** Walks through what was not seen: what is spared must not be found again. */
  async function localUnseenSince(before: number): Promise<number> {
    // Clients keep pictures of users and rooms, and look at them more often than it shows.
    const spared = new Set(await avatarUris({ query: db.scan }))
    let total = 0
    for (let after = 0; ; ) {
      const found = await unseenLocalMedia(db, config.server_name, before, after, some)
      const gone = found.filter(({ media_id }) => !spared.has(`mxc://${config.server_name}/${media_id}`))
      const numbers = gone.map(({ media_nid }) => media_nid)
      if (numbers.length > 0) total += (await db.tx((tx) => deleteMedia(tx, numbers))).length
      const last = found.at(-1)
      if (last === undefined || found.length < some) return total
      after = last.media_nid
    }
  }

  const remoteUnseenSince = (before: number) => removeAll(() => unseenRemoteMedia(db, config.server_name, before, some))

  return {
    contents,
    remoteUnseenSince,
    async round() {
      const now = clock.now()
      await spool.sweep(now - GRACE_MS)
      let media = await removeAll(() => expiredMedia(db, now, some))
      if (keep_remote_days > 0) media += await remoteUnseenSince(now - keep_remote_days * DAY_MS)
      if (keep_local_days > 0 && now >= nextLocalAt) {
        media += await localUnseenSince(now - keep_local_days * DAY_MS)
        nextLocalAt = now + DAY_MS
      }
      await db.tx((tx) => forgetPreviews(tx, now, some))
      return { media, contents: await contents() }
    },
  }
}
