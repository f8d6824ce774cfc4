/** Upper bounds of the histogram's buckets, in seconds. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, Number.POSITIVE_INFINITY]

interface Tally {
  readonly labels: string
  readonly buckets: number[]
  count: number
  seconds: number
}

export interface RequestTally {
  add(method: string, route: string, status: number, seconds: number): void
  /** The counts in the text format of Prometheus. */
  text(): string
  /** All requests except those that are meant to wait, by how long they took. */
  times(): RequestTimes
}

export interface RequestTimes {
  readonly count: number
  /** Upper bounds in seconds; the last bucket has none. */
  readonly bounds: readonly number[]
  /** How many took at most so long, and longer than the bound before: one more than there are bounds. */
  readonly buckets: readonly number[]
}

/** Their answers wait for news. */
const WAITING = /servlet="(?:C\/(?:sync|events)|client\/v4\/sync|CU\/[^"]*\/sync)"/

/** Counts requests in plain numbers: prom-client's own histogram takes about 3 µs per observation, which would slow down sends. */
export function createRequestTally(): RequestTally {
  const tallies = new Map<string, Tally>()
  return {
    add(method, route, status, seconds) {
      const labels = `method="${method}",servlet="${route}",code="${status}"`
      let tally = tallies.get(labels)
      if (tally === undefined) {
        tally = { labels, buckets: BOUNDS.map(() => 0), count: 0, seconds: 0 }
        tallies.set(labels, tally)
      }
      const index = BOUNDS.findIndex((bound) => seconds <= bound)
      tally.buckets[index] = (tally.buckets[index] ?? 0) + 1
      tally.count += 1
      tally.seconds += seconds
    },
    text: () => exposition([...tallies.values()]),
    times() {
      const counted = [...tallies.values()].filter(({ labels }) => !WAITING.test(labels))
      return {
        count: counted.reduce((sum, { count }) => sum + count, 0),
        bounds: BOUNDS.slice(0, -1),
        buckets: BOUNDS.map((_, index) => counted.reduce((sum, { buckets }) => sum + (buckets[index] ?? 0), 0)),
      }
    },
  }
}

function exposition(tallies: readonly Tally[]): string {
  const received = 'synapse_http_server_requests_received'
  const duration = 'synapse_http_server_response_time_seconds'
  return [
    `# HELP ${received} Requests, by operation and status.`,
    `# TYPE ${received} counter`,
    ...tallies.map(({ labels, count }) => `${received}{${labels}} ${count}`),
    `# HELP ${duration} Time from a request to its answer, by operation and status.`,
    `# TYPE ${duration} histogram`,
    ...tallies.flatMap((tally) => histogram(duration, tally)),
    '',
  ].join('\n')
}

function histogram(name: string, { labels, buckets, count, seconds }: Tally): string[] {
  let below = 0
  const lines = BOUNDS.map((bound, index) => {
    below += buckets[index] ?? 0
    return `${name}_bucket{${labels},le="${bound === Number.POSITIVE_INFINITY ? '+Inf' : bound}"} ${below}`
  })
  return [...lines, `${name}_sum{${labels}} ${seconds}`, `${name}_count{${labels}} ${count}`]
}
