/** A look at the server. Counts go up from its start. */
export interface Look {
  readonly at: number
  readonly since: number
  readonly glance: {
    readonly events: number
    readonly requests: Times & { readonly count: number }
    readonly waitingSyncs: number
    readonly residentBytes?: number
  }
}

/** The looks of the last hour, which the server keeps. */
export interface HistoryData {
  readonly since: number
  readonly points: readonly Omit<Look, 'since'>[]
}

/** What the overview asks for every two seconds. */
export interface OverviewData extends Look {
  readonly size: {
    readonly database_bytes: number
    readonly users: number
    readonly rooms: number
    readonly open_reports: number
    readonly last_backup_at: number | null
  }
  readonly monthly_active_users: number | null
  readonly federation: {
    readonly behind: readonly { readonly server: string; readonly failures: number; readonly retry_at: number }[]
    readonly behind_total: number
    readonly failing_total: number
  }
}

/** How many requests took at most so many seconds; the last bucket has no bound. */
export interface Times {
  readonly bounds: readonly number[]
  readonly buckets: readonly number[]
}

/** A moment of the charts. */
export interface Sample {
  readonly at: number
  readonly events: number
  readonly requests: number
  /** In milliseconds; null where nobody asked for anything. */
  readonly p99: number | null
  readonly syncs: number
  readonly resident: number | null
}

/** The time within which 99 of 100 requests were answered, in ms, read between the bounds of its bucket. */
export function p99Of({ bounds, buckets }: Times): number | null {
  const total = buckets.reduce((sum, each) => sum + each, 0)
  if (total === 0) return null
  const wanted = total * 0.99
  let below = 0
  for (const [index, inBucket] of buckets.entries()) {
    if (below + inBucket >= wanted && inBucket > 0) {
      const lower = index === 0 ? 0 : (bounds[index - 1] ?? 0)
      const upper = bounds[index] ?? lower
      return (lower + ((upper - lower) * (wanted - below)) / inBucket) * 1000
    }
    below += inBucket
  }
  return (bounds.at(-1) ?? 0) * 1000
}

/** What happened between two looks; undefined if the server was started again in between. */
export function sampleOf(before: Look, now: Look): Sample | undefined {
  const seconds = (now.at - before.at) / 1000
  if (seconds <= 0 || now.since !== before.since) return undefined
  const { requests } = now.glance
  const earlier = before.glance.requests
  const buckets = requests.buckets.map((each, index) => each - (earlier.buckets[index] ?? 0))
  return {
    at: now.at,
    events: (now.glance.events - before.glance.events) / seconds,
    requests: (requests.count - earlier.count) / seconds,
    p99: p99Of({ bounds: requests.bounds, buckets }),
    syncs: now.glance.waitingSyncs,
    resident: now.glance.residentBytes ?? null,
  }
}

/** What happened between each look and the next. */
export function samplesOf({ since, points }: HistoryData): readonly Sample[] {
  return points.slice(1).flatMap((point, index) => sampleOf({ since, ...points[index]! }, { since, ...point }) ?? [])
}

/** The hour before the newest look: what the server kept, up to where this page began to look itself. */
export function lastHour(kept: readonly Sample[], own: readonly Sample[]): readonly Sample[] {
  const begun = own[0]?.at ?? Number.POSITIVE_INFINITY
  const all = [...kept.filter(({ at }) => at < begun), ...own]
  const since = (all.at(-1)?.at ?? 0) - HOUR_MS
  return all.filter(({ at }) => at > since)
}

const HOUR_MS = 3_600_000
