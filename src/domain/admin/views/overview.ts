import type { Database } from '../../../store/db/db.ts'
import { measureServer, type ServerSize } from '../../../store/db/server-size.ts'
import { surveys } from '../../../store/db/whole-tables.ts'
import { type Lagging, surveyDestinations } from '../../../store/federation/federation-destinations.ts'
import type { Clock } from '../../clock.ts'
import {
  LAGGING_COUNTED_EVERY_MS,
  MAX_SERVERS_AT_A_GLANCE,
  SIZE_MEASURED_EVERY_MS,
} from '../../limits/console-pages.ts'
import type { Glance, Metrics } from '../../metrics.ts'
import type { Statistics } from '../statistics.ts'
import { measuredEvery } from './measured.ts'

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
    readonly behind: Lagging['servers']
    readonly behind_total: number
    readonly failing_total: number
  }
}

export function createOverview(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'glance'>
  readonly statistics: Pick<Statistics, 'latestMonthlyActiveUsers'>
  /** When the server started. */
  readonly since: number
}): Overview {
  const { db, clock, metrics, statistics, since } = deps
  const whole = surveys(db)
  // Many operators may look every two seconds; all of them are shown the same measurement.
  const sizes = measuredEvery(SIZE_MEASURED_EVERY_MS, clock, () => measureServer(whole))
  const lagging = measuredEvery(LAGGING_COUNTED_EVERY_MS, clock, () =>
    surveyDestinations(whole, MAX_SERVERS_AT_A_GLANCE),
  )

  return {
    async read() {
      const [glance, size, { servers, total, failing }] = await Promise.all([metrics.glance(), sizes(), lagging()])
      const active = statistics.latestMonthlyActiveUsers()
      return {
        at: clock.now(),
        since,
        glance,
        size,
        monthly_active_users: Number.isNaN(active) ? null : active,
        federation: { behind: servers, behind_total: total, failing_total: failing },
      }
    },
  }
}
