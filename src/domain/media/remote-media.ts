import type { Config } from '../../config/schema.ts'
import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import { readContentType } from '../../core/media/content-disposition.ts'
import { type Mxc, writeMxc } from '../../core/mxc.ts'
import type { MediaPeers } from '../../outbound/peer-media.ts'
import { putRemoteMedia } from '../../store/media/media.ts'
import type { Clock } from '../clock.ts'
import {
  MAX_REMEMBERED_MISSES,
  MAX_REMOTE_FETCHES,
  MAX_REMOTE_FETCHES_PER_SERVER,
  MAX_WAITING_FETCHES_PER_SERVER,
} from '../limits.ts'
import type { ByteAllowance } from './byte-allowance.ts'
import type { Library } from './library.ts'
import type { MediaMetrics } from './media-metrics.ts'
import { createSlots } from './slots.ts'
import type { Spool } from './spool.ts'

/** Fetches media of other servers. */
export interface RemoteMedia {
  /**
   * Fetches a file and stores it. Callers that want the same file share one fetch.
   *
   * @param fetchFor whose allowance it counts against
   * @throws ProtocolError as `MediaPeers.download`; `M_LIMIT_EXCEEDED`
   */
  fetch(mxc: Mxc, fetchFor: string): Promise<void>
}

/** A failed fetch is not repeated within this time. */
const MISS_MS = 60_000

export function createRemoteMedia(deps: {
  readonly config: Pick<Config, 'media'>
  readonly clock: Clock
  readonly peers: MediaPeers
  readonly spool: Spool
  readonly library: Library
  readonly allowance: ByteAllowance
  readonly metrics: MediaMetrics
}): RemoteMedia {
  const { config, clock, peers, spool, library, allowance, metrics } = deps
  const { max_remote_bytes: maxBytes, without_token } = config.media
  const underWay = new Map<string, Promise<void>>()
  const misses = createCache<string, { readonly error: ProtocolError; readonly until: number }>(MAX_REMEMBERED_MISSES)
  const slots = createSlots({
    perKey: MAX_REMOTE_FETCHES_PER_SERVER,
    total: MAX_REMOTE_FETCHES,
    waitingPerKey: MAX_WAITING_FETCHES_PER_SERVER,
  })

  async function bring(mxc: Mxc, fetchFor: string): Promise<void> {
    await peers.download(mxc, maxBytes, async ({ body, contentType, fileName }) => {
      const file = await spool.take(body, maxBytes)
      allowance.take(fetchFor, file.bytes)
      metrics.fetched(file.bytes)
      const media = {
        ...{ server_name: mxc.server, media_id: mxc.mediaId, user_nid: null, digest: file.digest, expires_at: null },
        ...{ content_type: readContentType(contentType), file_name: fileName ?? null },
        is_open: without_token === 'open',
      }
      await library.keep(file, (tx, now) => putRemoteMedia(tx, media, now))
    })
  }

  async function fetch(mxc: Mxc, key: string, fetchFor: string): Promise<void> {
    const miss = misses.get(key)
    if (miss !== undefined && miss.until > clock.now()) throw miss.error
    allowance.require(fetchFor)
    try {
      await slots.run(mxc.server, () => bring(mxc, fetchFor))
    } catch (thrown) {
      const error = asRemote(thrown)
      if (error instanceof ProtocolError && (error.status === 404 || error.status === 502)) {
        misses.set(key, { error, until: clock.now() + MISS_MS })
        metrics.fetched(undefined)
      }
      throw error
    }
  }

  return {
    fetch(mxc, fetchFor) {
      const key = writeMxc(mxc)
      const running = underWay.get(key)
      if (running !== undefined) return running
      const started = fetch(mxc, key, fetchFor).finally(() => underWay.delete(key))
      underWay.set(key, started)
      return started
    },
  }
}

/** It is not the requester's fault that a remote file is too large. */
function asRemote(error: unknown): unknown {
  if (!(error instanceof ProtocolError) || error.errcode !== 'M_TOO_LARGE') return error
  return new ProtocolError('M_TOO_LARGE', error.message, { status: 502 })
}
