import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { Clock } from '../clock.ts'
import { MAX_ALLOWANCES, REMOTE_MEDIA_BURST_BYTES, REMOTE_MEDIA_BYTES_PER_SECOND } from '../limits.ts'

/** Limits the remote media that a caller may cause to be fetched: a bucket of bytes that refills, and that the last file may overdraw. */
export interface ByteAllowance {
  /** @throws ProtocolError `M_LIMIT_EXCEEDED` if it is used up */
  require(key: string): void
  take(key: string, bytes: number): void
}

export function createByteAllowance(deps: { readonly clock: Clock; isEnabled(): boolean }): ByteAllowance {
  const { clock, isEnabled } = deps
  const burstMs = (REMOTE_MEDIA_BURST_BYTES / REMOTE_MEDIA_BYTES_PER_SECOND) * 1000
  /** When each bucket will be full again. */
  const fullAt = createCache<string, number>(MAX_ALLOWANCES)
  const stateOf = (key: string) => Math.max(fullAt.get(key) ?? 0, clock.now())
  return {
    require(key) {
      if (!isEnabled()) return
      const waitMs = stateOf(key) - burstMs - clock.now()
      if (waitMs < 0) return
      throw new ProtocolError('M_LIMIT_EXCEEDED', 'You have fetched much media of other servers. Wait a little.', {
        extra: { retry_after_ms: Math.ceil(waitMs) + 1_000 },
      })
    },
    take(key, bytes) {
      if (!isEnabled()) return
      fullAt.set(key, stateOf(key) + (bytes / REMOTE_MEDIA_BYTES_PER_SECOND) * 1000)
    },
  }
}
