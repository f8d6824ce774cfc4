import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import { IMAGE_HEADER_BYTES, readImageHeader } from '../../core/media/image-header.ts'
import { type ThumbnailSize, thumbnailSizeFor } from '../../core/media/thumbnail-size.ts'
import type { Database, Reader } from '../../store/db/db.ts'
import { findThumbnail, insertThumbnail } from '../../store/media/media-thumbnails.ts'
import { MAX_IMAGE_PIXELS, MAX_REMEMBERED_FAILURES, MAX_THUMBNAIL_SOURCE_BYTES } from '../limits.ts'
import { type Decoder, tooLarge, undecodable } from './decoder.ts'
import type { FoundMedia } from './downloads.ts'
import type { Library } from './library.ts'
import type { MediaMetrics } from './media-metrics.ts'
import type { Spool, SpooledFile } from './spool.ts'

export interface ThumbnailWish extends ThumbnailSize {
  readonly isAnimated: boolean
}

/** Thumbnails, made on the first request and stored like other media. */
export interface Thumbnails {
  /**
   * A thumbnail at least as large as wanted, as far as the image and the largest size allow.
   * @throws ProtocolError 400 `M_UNKNOWN` for a file that is no image, `M_TOO_LARGE`: 413, or 502 for remote media; `M_LIMIT_EXCEEDED`
   */
  of(media: FoundMedia, wish: ThumbnailWish): Promise<FoundMedia>
}

const FAILURE_MS = 10 * 60_000

export function createThumbnails(deps: {
  readonly db: Database
  readonly library: Library
  readonly spool: Spool
  readonly decoder: Decoder
  readonly metrics: MediaMetrics
}): Thumbnails {
  const { db, library, spool, decoder, metrics } = deps
  const underWay = new Map<string, Promise<FoundMedia>>()
  /** A failed thumbnail is not tried again at once, because failures cost the most. */
  const failures = createCache<string, ProtocolError>(MAX_REMEMBERED_FAILURES, { ttl: FAILURE_MS })

  /** The image as a local file. Its header is checked before anything else is read. */
  async function fileOf({ digest, bytes }: FoundMedia): Promise<SpooledFile> {
    if (bytes > MAX_THUMBNAIL_SOURCE_BYTES) throw tooLarge()
    const last = Math.min(bytes, IMAGE_HEADER_BYTES) - 1
    if (last < 0) throw undecodable()
    const header = readImageHeader(await collect(await library.open(digest, { first: 0, last })))
    if (header === undefined) throw undecodable()
    if (header.width * header.height > MAX_IMAGE_PIXELS) throw tooLarge()
    return spool.take(await library.open(digest), MAX_THUMBNAIL_SOURCE_BYTES)
  }

  async function make(media: FoundMedia, size: ThumbnailWish, variant: string): Promise<FoundMedia> {
    const source = await fileOf(media)
    const to = await spool.nameFor()
    try {
      const contentType = await decoder.shrink({ ...size, from: source.path, to })
      const file = await spool.adopt(to)
      await library.keep(file, (tx) =>
        insertThumbnail(tx, { source: media.digest, variant, digest: file.digest, contentType }),
      )
      return thumbnail(media, { digest: file.digest, bytes: file.bytes, content_type: contentType })
    } finally {
      await source.discard()
      await spool.remove(to)
    }
  }

  async function made(media: FoundMedia, size: ThumbnailWish, variant: string, key: string): Promise<FoundMedia> {
    const failure = failures.get(key)
    if (failure !== undefined) throw failure
    try {
      const result = await make(media, size, variant)
      metrics.thumbnailed('made')
      return result
    } catch (error) {
      metrics.thumbnailed('failed')
      if (error instanceof ProtocolError && (error.status === 400 || error.status === 413)) failures.set(key, error)
      throw error
    }
  }

  return {
    async of(media, wish) {
      const found = await findStoredThumbnail(db, media, wish)
      if (found !== undefined) return found
      const { size, variant } = variantOf(wish)
      const key = `${media.digest.toString('hex')} ${variant}`
      let running = underWay.get(key)
      if (running === undefined) {
        running = made(media, size, variant, key).finally(() => underWay.delete(key))
        underWay.set(key, running)
      }
      return running.catch((error: unknown) => {
        throw media.isRemote ? asRemote(error) : error
      })
    },
  }
}

/** A thumbnail that was made before, of the size that would be made. */
export async function findStoredThumbnail(
  reader: Reader,
  media: FoundMedia,
  wish: ThumbnailWish,
): Promise<FoundMedia | undefined> {
  const row = await findThumbnail(reader, media.digest, variantOf(wish).variant)
  return row && thumbnail(media, row)
}

/** What is made of an image, and the name of this in the rows. */
function variantOf({ isAnimated, ...wanted }: ThumbnailWish): {
  readonly size: ThumbnailWish
  readonly variant: string
} {
  const { method, width, height } = thumbnailSizeFor(wanted)
  const variant = `${method}-${width}x${height}${isAnimated ? '-animated' : ''}`
  return { size: { method, width, height, isAnimated }, variant }
}

function thumbnail(
  { isRemote }: FoundMedia,
  row: { readonly digest: Buffer; readonly bytes: number; readonly content_type: string },
): FoundMedia {
  const fileName = `thumbnail.${row.content_type.slice('image/'.length)}`
  return { digest: row.digest, bytes: row.bytes, contentType: row.content_type, fileName, isRemote }
}

function asRemote(error: unknown): unknown {
  if (!(error instanceof ProtocolError) || error.errcode !== 'M_TOO_LARGE') return error
  return new ProtocolError('M_TOO_LARGE', error.message, { status: 502 })
}

async function collect(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}
