import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { readContentType, readFileName } from '../../core/media/content-disposition.ts'
import type { Mxc } from '../../core/mxc.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import {
  bytesOfUser,
  completeMedia,
  findMedia,
  insertMedia,
  lockUploader,
  type NewMedia,
  reserveMedia,
} from '../../store/media/media.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_PENDING_UPLOADS_PER_USER, MAX_UPLOADS_AT_ONCE, PENDING_UPLOAD_MS } from '../limits.ts'
import type { Arrivals } from './arrivals.ts'
import type { Library } from './library.ts'
import type { MediaMetrics } from './media-metrics.ts'
import { type Spool, tooLarge } from './spool.ts'
import { StoreFailure } from './store-failure.ts'

/** A file as a client sends it. */
export interface Upload {
  readonly source: AsyncIterable<Buffer>
  readonly contentType: string | undefined
  readonly fileName: string | undefined
  /** Its length, if the client declares it. */
  readonly announcedBytes: number | undefined
}

/** Receives users' files (client-server API, "Content repository"). */
export interface Uploads {
  /** The size of the largest upload. */
  readonly maxBytes: number
  /** @throws ProtocolError `M_TOO_LARGE`, `M_FORBIDDEN` above the user's quota, `M_LIMIT_EXCEEDED` */
  upload(by: Requester, upload: Upload): Promise<Mxc>
  /**
   * Reserves a media id for a later upload, and says until when it is valid. @throws ProtocolError `M_LIMIT_EXCEEDED` if the user has too
   * many
   */
  reserve(by: Requester): Promise<{ readonly mxc: Mxc; readonly expiresAt: number }>
  /** @throws ProtocolError as `upload`; `M_NOT_FOUND`, `M_FORBIDDEN` for another user's media id, `M_CANNOT_OVERWRITE_MEDIA` */
  complete(by: Requester, mxc: Mxc, upload: Upload): Promise<void>
}

const MEDIA_ID_BYTES = 18

export function createUploads(deps: {
  readonly config: Pick<Config, 'server_name' | 'media'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly spool: Spool
  readonly library: Library
  readonly arrivals: Arrivals
  readonly metrics: MediaMetrics
}): Uploads {
  const { config, db, clock, random, spool, library, arrivals, metrics } = deps
  const { max_upload_bytes: maxBytes, max_bytes_per_user: quota, without_token } = config.media
  const server = config.server_name
  /** How many uploads of each user are running. */
  const underWay = new Map<number, number>()

  const newName = (): Mxc => ({ server, mediaId: random.bytes(MEDIA_ID_BYTES).toString('base64url') })

  async function requireRoom(reader: Database | Tx, userNid: number, bytes: number): Promise<void> {
    if (quota === 0 || (await bytesOfUser(reader, userNid)) + bytes <= quota) return
    throw new ProtocolError('M_FORBIDDEN', `Your files may come to ${quota} bytes; with this one they would be more.`)
  }

  /** The checks that need no byte of the file. */
  async function admit({ userNid }: Requester, { announcedBytes = 0 }: Upload): Promise<void> {
    if (announcedBytes > maxBytes) throw tooLarge(maxBytes)
    await requireRoom(db, userNid, announcedBytes)
    if ((underWay.get(userNid) ?? 0) < MAX_UPLOADS_AT_ONCE) return
    throw new ProtocolError('M_LIMIT_EXCEEDED', `You are uploading ${MAX_UPLOADS_AT_ONCE} files already.`, {
      extra: { retry_after_ms: 1_000 },
    })
  }

  async function receive(
    by: Requester,
    mxc: Mxc,
    upload: Upload,
    refer: (tx: Tx, media: NewMedia, now: number) => Promise<void>,
  ): Promise<void> {
    await admit(by, upload)
    const { userNid } = by
    underWay.set(userNid, (underWay.get(userNid) ?? 0) + 1)
    try {
      const file = await spool.take(upload.source, maxBytes, upload.announcedBytes).catch(brokenOff)
      const media: NewMedia = {
        ...{ server_name: mxc.server, media_id: mxc.mediaId, user_nid: userNid, digest: file.digest, expires_at: null },
        content_type: readContentType(upload.contentType),
        file_name: readFileName(upload.fileName) ?? null,
        is_open: without_token === 'open',
      }
      await library.keep(file, async (tx, now) => {
        if (quota > 0) await lockUploader(tx, userNid)
        await requireRoom(tx, userNid, file.bytes)
        await refer(tx, media, now)
      })
      metrics.uploaded(file.bytes)
    } finally {
      const left = (underWay.get(userNid) ?? 1) - 1
      if (left === 0) underWay.delete(userNid)
      else underWay.set(userNid, left)
    }
  }

  return {
    maxBytes,
    async upload(by, upload) {
      const mxc = newName()
      await receive(by, mxc, upload, async (tx, media, now) => void (await insertMedia(tx, media, now)))
      return mxc
    },
    async reserve(by) {
      const mxc = newName()
      const now = clock.now()
      const expiresAt = now + PENDING_UPLOAD_MS
      const name = { server_name: mxc.server, media_id: mxc.mediaId, user_nid: by.userNid, expires_at: expiresAt }
      const limits = { now, atMost: MAX_PENDING_UPLOADS_PER_USER }
      if (await db.tx((tx) => reserveMedia(tx, name, limits))) return { mxc, expiresAt }
      const error = `You have ${MAX_PENDING_UPLOADS_PER_USER} uploads pending: upload to those first.`
      throw new ProtocolError('M_LIMIT_EXCEEDED', error, { extra: { retry_after_ms: 60_000 } })
    },
    async complete(by, mxc, upload) {
      const row = mxc.server === server ? await findMedia(db, server, mxc.mediaId) : undefined
      const isThere = row !== undefined && (row.expires_at === null || row.expires_at > clock.now())
      if (!isThere) throw new ProtocolError('M_NOT_FOUND', 'There is no such upload, or its time is over.')
      if (row.user_nid !== by.userNid) throw new ProtocolError('M_FORBIDDEN', 'This upload is of another user.')
      if (row.digest !== null) throw overwritten()
      await receive(by, mxc, upload, async (tx, media, now) => {
        if (!(await completeMedia(tx, row.media_nid, media, now))) throw overwritten()
      })
      arrivals.announce(mxc)
    },
  }
}

function overwritten(): ProtocolError {
  return new ProtocolError('M_CANNOT_OVERWRITE_MEDIA', 'This media is uploaded already.')
}

/** If the client disconnects, it is nobody's fault and there is no one to answer. */
function brokenOff(error: unknown): never {
  if (error instanceof ProtocolError || error instanceof StoreFailure) throw error
  throw new ProtocolError('M_UNKNOWN', 'The upload broke off.', { status: 400 })
}
