import type { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { ByteRange } from '../../core/media/byte-range.ts'
import { UNKNOWN_TYPE } from '../../core/media/content-disposition.ts'
import { type Mxc, writeMxc } from '../../core/mxc.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import type { Database } from '../../store/db/db.ts'
import { findMedia, type MediaRow, noteSeen } from '../../store/media/media.ts'
import type { Audit } from '../admin/audit.ts'
import type { Cancellation } from '../cancellation.ts'
import type { Clock } from '../clock.ts'
import { MAX_UPLOAD_WAIT_MS, MAX_WAITING_DOWNLOADS } from '../limits.ts'
import type { Gate } from '../moderation/gate.ts'
import type { Arrivals } from './arrivals.ts'
import type { Library } from './library.ts'
import type { RemoteMedia } from './remote-media.ts'

/** A file that may be sent. */
export interface FoundMedia {
  readonly digest: Buffer
  readonly bytes: number
  readonly contentType: string
  readonly fileName: string | undefined
  /** Whether it is of another server. */
  readonly isRemote: boolean
}

/** The requester, and the purpose. */
export interface MediaWish {
  readonly mxc: Mxc
  /** Who the fetch counts against: a user or an address; undefined if other servers must not be asked. */
  readonly fetchFor: string | undefined
  /** The requester is unknown: only media that is open to everybody is sent. */
  readonly isAnonymous: boolean
  /** An administrator of this server who wants the file although it is hidden; nobody else gets it by that. */
  readonly despiteQuarantine?: UserId | undefined
  /** How long to wait for a file that is not uploaded yet. */
  readonly timeoutMs: number | undefined
  readonly signal: Cancellation
}

export interface Downloads {
  /**
   * @throws ProtocolError `M_NOT_FOUND` for media that does not exist or is hidden; `M_NOT_YET_UPLOADED`; errors of the fetch:
   *   `M_TOO_LARGE` (502), `M_UNKNOWN` (502), `M_LIMIT_EXCEEDED`
   */
  find(wish: MediaWish): Promise<FoundMedia>
  /** @throws as `Library.open` */
  open(media: FoundMedia, range?: ByteRange): Promise<Readable>
}

const DEFAULT_WAIT_MS = 20_000
const LOOK_EVERY_MS = 1_000
const DAY_MS = 24 * 60 * 60 * 1000

export function createDownloads(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly clock: Clock
  readonly library: Library
  readonly arrivals: Arrivals
  readonly remote: RemoteMedia
  readonly gate: Pick<Gate, 'media'>
  readonly audit: Pick<Audit, 'record'>
  readonly log: Logger
}): Downloads {
  const { config, db, clock, library, arrivals, remote, gate, audit, log } = deps

  /** Waits until the promised upload is there, or time is over. */
  async function uploaded(mxc: Mxc, timeoutMs: number, signal: Cancellation): Promise<MediaRow | undefined> {
    const until = clock.now() + Math.min(Math.max(timeoutMs, 0), MAX_UPLOAD_WAIT_MS)
    for (;;) {
      const row = await findMedia(db, mxc.server, mxc.mediaId)
      const isPending = row !== undefined && row.digest === null && (row.expires_at ?? 0) > clock.now()
      if (!isPending) return row
      const leftMs = until - clock.now()
      if (leftMs <= 0 || signal.aborted || arrivals.waiting() >= MAX_WAITING_DOWNLOADS) {
        throw new ProtocolError('M_NOT_YET_UPLOADED', 'This media is not uploaded yet. Try again later.')
      }
      await arrivals.next(mxc, Math.min(leftMs, LOOK_EVERY_MS))
    }
  }

  async function fetched(mxc: Mxc, fetchFor: string | undefined): Promise<MediaRow | undefined> {
    const row = await findMedia(db, mxc.server, mxc.mediaId)
    if (row?.is_stored) return row
    if (fetchFor === undefined) return undefined
    await remote.fetch(mxc, fetchFor)
    return findMedia(db, mxc.server, mxc.mediaId)
  }

  /** Without delaying the download. */
  function sawToday(row: MediaRow): void {
    const now = clock.now()
    if (isSeenToday(row, now)) return
    db.tx((tx) => noteSeen(tx, row.media_nid, now)).catch((err) => log.warn({ err }, 'a look at media was not noted'))
  }

  /** A look at a hidden file is in the record. */
  async function mayLook(mxc: Mxc, by: UserId | undefined): Promise<boolean> {
    if (by === undefined || (await findAccount(db, by))?.is_admin !== true) return false
    return audit.record({ actor: by, act: 'look at a hidden file', target: writeMxc(mxc) }, () => true)
  }

  return {
    async find({ mxc, fetchFor, isAnonymous, despiteQuarantine, timeoutMs = DEFAULT_WAIT_MS, signal }) {
      const isRemote = mxc.server !== config.server_name
      if (isRemote) gate.media(mxc.server)
      const row = isRemote ? await fetched(mxc, fetchFor) : await uploaded(mxc, timeoutMs, signal)
      const isShown =
        row !== undefined &&
        (row.is_open || !isAnonymous) &&
        (row.quarantined_by === null || (await mayLook(mxc, despiteQuarantine)))
      if (!isShown || row.digest === null) throw new ProtocolError('M_NOT_FOUND', 'There is no such media.')
      sawToday(row)
      return foundMedia(row, row.digest, isRemote)
    },
    open: ({ digest }, range) => library.open(digest, range),
  }
}

/** Whether a look at a file needs not be noted any more: that is done once a day. */
export const isSeenToday = ({ seen_at }: MediaRow, now: number): boolean => now - seen_at < DAY_MS

export function foundMedia(row: MediaRow, digest: Buffer, isRemote: boolean): FoundMedia {
  return {
    digest,
    bytes: row.bytes ?? 0,
    contentType: row.content_type ?? UNKNOWN_TYPE,
    fileName: row.file_name ?? undefined,
    isRemote,
  }
}
