import type { Clock } from '../../clock.ts'
import { MAX_HISTORY } from '../../limits/console-pages.ts'
import type { Glance, Metrics } from '../../metrics.ts'

/** What the server did in the last hour, in memory: so the first page has something to show at once. */
export interface OverviewHistory {
  /** Looks now, and forgets what is older than the history is long. */
  look(): Promise<void>
  /** The oldest first. */
  read(): HistoryView
}

export interface HistoryView {
  readonly since: number
  readonly points: readonly HistoryPoint[]
}

/** A moment: counts go up from the start of the process. */
export interface HistoryPoint {
  readonly at: number
  readonly glance: Pick<Glance, 'events' | 'requests' | 'waitingSyncs' | 'residentBytes'>
}

export function createOverviewHistory(deps: {
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'glance'>
  /** When the server started. */
  readonly since: number
}): OverviewHistory {
  const { clock, metrics, since } = deps
  const points: HistoryPoint[] = []
  return {
    async look() {
      const { events, requests, waitingSyncs, residentBytes } = await metrics.glance()
      points.push({ at: clock.now(), glance: { events, requests, waitingSyncs, residentBytes } })
      if (points.length > MAX_HISTORY) points.shift()
    },
    read: () => ({ since, points }),
  }
}
