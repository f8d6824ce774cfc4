import { statfs } from 'node:fs/promises'
import { ProtocolError } from '../../core/errors.ts'
import type { BoundMetrics } from '../bound-metrics.ts'

/** The part of the disk that files leave free: a database on a full disk stops. */
export interface DiskReserve {
  /** @throws ProtocolError 507 `M_UNKNOWN` if this many bytes would leave less than the reserve */
  require(directory: string, bytes: number): Promise<void>
}

const USUAL_SHARE = 0.05
const USUAL_MOST_BYTES = 512 * 1024 * 1024

/** @param reservedBytes 0 for the default */
export function createDiskReserve(reservedBytes: number, bounds?: BoundMetrics): DiskReserve {
  return {
    async require(directory, bytes) {
      // If this fails, the write will show whether the disk is full.
      const disk = await statfs(directory).catch(() => undefined)
      if (disk === undefined) return
      const { bsize, bavail, blocks } = disk
      const reserve = reservedBytes || Math.min(USUAL_SHARE * blocks * bsize, USUAL_MOST_BYTES)
      if (bavail * bsize - bytes >= reserve) return
      bounds?.reached('disk reserve')
      throw new ProtocolError(
        'M_UNKNOWN',
        'The disk of this server is almost full. Its operator has to make room before it takes files.',
        {
          status: 507,
        },
      )
    },
  }
}
