import type { Database } from '../../../store/db/db.ts'
import { measureServer, type ServerSize } from '../../../store/db/server-size.ts'
import { getDestinations } from '../../../store/federation/federation-destinations.ts'
import type { Clock } from '../../clock.ts'
import { MAX_SERVERS_AT_A_GLANCE, SIZE_MEASURED_EVERY_MS } from '../../limits/console-pages.ts'
import type { Glance, Metrics } from '../../metrics.ts'
import type { Statistics } from '../statistics.ts'

/** The server at this moment, for the first page of the console. */
export interface Overview {
  read(): Promise<OverviewView>
}

/** Counts go up from the start of the process: the difference of two views is what happened between them. */
export interface OverviewView {
  readonly at: number
  readonly since: number
  readonly glance: Glance
  readonly size: ServerSize
  readonly monthly_active_users: number | null
  readonly federation: {
    /** The servers that have not been sent everything; those that fail most often first. */
    readonly behind: readonly { readonly server: string; readonly failures: number; readonly retry_at: number }[]
    readonly behind_total: number
    readonly failing_total: number
  }
}

export function createOverview(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'glance'>
  readonly statistics: Pick<Statistics, 'latestMonthlyActiveUsers'>
}): Overview {
  const { db, clock, metrics, statistics } = deps
  const since = clock.now()
  let size: Promise<ServerSize> | undefined
  let measuredAt = Number.NEGATIVE_INFINITY

  /** Many operators may look every two seconds; all of them are shown the same measurement. */
  function measured(): Promise<ServerSize> {
    if (size !== undefined && clock.now() - measuredAt < SIZE_MEASURED_EVERY_MS) return size
    measuredAt = clock.now()
    const measuring = measureServer({ query: db.scan })
    measuring.catch(() => {
      if (size === measuring) size = undefined
    })
    size = measuring
    return measuring
  }

  return {
    async read() {
      const [glance, holds, destinations] = await Promise.all([metrics.glance(), measured(), getDestinations(db)])
      const failing = destinations.filter(({ failures }) => failures > 0)
      const active = statistics.latestMonthlyActiveUsers()
      return {
        at: clock.now(),
        since,
        glance,
        size: holds,
        monthly_active_users: Number.isNaN(active) ? null : active,
        federation: {
          behind: destinations
            .slice(-MAX_SERVERS_AT_A_GLANCE)
            .reverse()
            .map(({ server, failures, retry_at }) => ({ server, failures, retry_at })),
          behind_total: destinations.length,
          failing_total: failing.length,
        },
      }
    },
  }
}
