import type { Config } from '../../config/schema.ts'
import type { Reader } from '../../store/db/db.ts'
import { findMedia } from '../../store/media/media.ts'
import { hasPolicyLists } from '../../store/rooms/policy-lists.ts'
import type { Clock } from '../clock.ts'
import { OnlyWhereServed } from '../standby/only-where-served.ts'
import { type Downloads, foundMedia, isSeenToday } from './downloads.ts'
import type { MediaStore } from './media-store.ts'
import { findStoredThumbnail, type Thumbnails } from './thumbnails.ts'

/** Media as a node that stands by finds it. */
export interface StandbyMedia {
  readonly downloads: Downloads
  readonly thumbnails: Thumbnails
}

/**
 * Files that are stored, and that the requester may have. Functions throw `OnlyWhereServed` for all others: hidden, lost, not uploaded, to
 * be fetched or made; for the first one of a day, which is recorded; and for what this node does not find in the store.
 */
export function createStandbyMedia(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Reader
  readonly clock: Clock
  readonly store: Pick<MediaStore, 'open'>
}): StandbyMedia {
  const { config, db, clock, store } = deps

  return {
    downloads: {
      async find({ mxc, isAnonymous }) {
        const isRemote = mxc.server !== config.server_name
        const row = await findMedia(db, mxc.server, mxc.mediaId)
        const isShown =
          row?.is_stored === true &&
          row.digest !== null &&
          row.quarantined_by === null &&
          (row.is_open || !isAnonymous) &&
          isSeenToday(row, clock.now())
        // Which servers the lists ban is in the memory of the node that serves.
        if (!isShown || (isRemote && (await hasPolicyLists(db))))
          throw new OnlyWhereServed('this file is found, or not, where it is served')
        return foundMedia(row, row.digest, isRemote)
      },
      async open({ digest }, range) {
        const content = await store.open(digest, range).catch((error: Error) => {
          throw new Error('the store of media cannot be used', { cause: error.cause })
        })
        if (content === undefined) throw new OnlyWhereServed('this node does not find the file')
        return content
      },
    },
    thumbnails: {
      async of(media, wish) {
        const found = await findStoredThumbnail(db, media, wish)
        if (found === undefined) throw new OnlyWhereServed('the thumbnail is to be made')
        return found
      },
    },
  }
}
