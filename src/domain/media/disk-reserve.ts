import { statfs } from 'node:fs/promises'
import { ProtocolError } from '../../core/errors.ts'
import type { BoundMetrics } from '../bound-metrics.ts'

/** What files leave of the disk: a database that meets its last byte stops. */
export interface DiskReserve {
  /** @throws ProtocolError 507 `M_UNKNOWN` where less than the reserve would be left after so many bytes more */
  require(directory: string, bytes: number): Promise<void>
}

const USUAL_SHARE = 0.05
const USUAL_MOST_BYTES = 512 * 1024 * 1024

/** @param reservedBytes 0: the usual */
export function createDiskReserve(reservedBytes: number, bounds?: BoundMetrics): DiskReserve {
  return {
    async require(directory, bytes) {
      // What cannot be told is found when it is written.
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
