import type { Config } from '../../config/schema.ts'
import type { Database } from '../../store/db/db.ts'
import {
  avatarUris,
  deleteMedia,
  expiredMedia,
  forgetContent,
  forgetPreviews,
  holdReleased,
  mediaOfEnded,
  releaseContent,
  unseenLocalMedia,
  unseenRemoteMedia,
} from '../../store/media/media-sweep.ts'
import type { Clock } from '../clock.ts'
import { MAX_MEDIA_SWEPT_AT_ONCE } from '../limits.ts'
import type { MediaStore } from './media-store.ts'
import type { Spool } from './spool.ts'

/** Deletes media that is no longer wanted, then the bytes that nothing refers to. It may be interrupted at any point. */
export interface Sweep {
  /** Deletes everything that is due. Returns how many media and how many contents were deleted. */
  round(): Promise<{ readonly media: number; readonly contents: number }>
  /** Deletes content that nothing refers to, unless somebody wanted it just now. Returns how many. */
  contents(): Promise<number>
  /** Deletes remote media that nobody viewed since a time. Returns how many. */
  remoteUnseenSince(before: number): Promise<number>
}

/** A file that is just arriving must count neither as unreferenced content nor as left behind. */
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
  const some = MAX_MEDIA_SWEPT_AT_ONCE
  /** This reads all rooms to find what must stay, so it does not run every hour. */
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

  /** An upload of the same bytes waits for the end of this, and then stores them again. */
  function removeContent(digest: Buffer, before: number): Promise<boolean> {
    return db.tx(async (tx) => {
      if (!(await holdReleased(tx, digest, before))) return false
      await store.remove(digest)
      await forgetContent(tx, digest)
      return true
    })
  }

  /** Walks through media that was not viewed, in order, so that media that stays is not found again. */
  async function localUnseenSince(before: number): Promise<number> {
    // Clients cache avatars of users and rooms, so they are used more often than the server sees.
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
      const { keep_local_days, keep_ended_days, keep_remote_days } = config.media
      const now = clock.now()
      await spool.sweep(now - GRACE_MS)
      let media = await removeAll(() => expiredMedia(db, now, some))
      if (keep_remote_days > 0) media += await remoteUnseenSince(now - keep_remote_days * DAY_MS)
      if (keep_ended_days > 0) {
        media += await removeAll(() => mediaOfEnded({ query: db.scan }, now - keep_ended_days * DAY_MS, some))
      }
      if (keep_local_days > 0 && now >= nextLocalAt) {
        media += await localUnseenSince(now - keep_local_days * DAY_MS)
        nextLocalAt = now + DAY_MS
      }
      await db.tx((tx) => forgetPreviews(tx, now, some))
      return { media, contents: await contents() }
    },
  }
}
