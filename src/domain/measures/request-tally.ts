import { Histogram, head, SECONDS } from './histogram.ts'

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

/** Counts requests by operation and status. */
export function createRequestTally(): RequestTally {
  const tallies = new Map<string, Histogram>()
  return {
    add(method, route, status, seconds) {
      const labels = `method="${method}",servlet="${route}",code="${status}"`
      let tally = tallies.get(labels)
      if (tally === undefined) {
        tally = new Histogram()
        tallies.set(labels, tally)
      }
      tally.observe(seconds)
    },
    text: () => exposition([...tallies]),
    times() {
      const counted = [...tallies].filter(([labels]) => !WAITING.test(labels)).map(([, tally]) => tally)
      return {
        count: counted.reduce((sum, { count }) => sum + count, 0),
        bounds: SECONDS,
        buckets: [...SECONDS, 0].map((_, index) => counted.reduce((sum, { counts }) => sum + (counts[index] ?? 0), 0)),
      }
    },
  }
}

function exposition(tallies: readonly (readonly [labels: string, Histogram])[]): string {
  const received = 'synapse_http_server_requests_received'
  const duration = 'synapse_http_server_response_time_seconds'
  return [
    ...head(received, 'Requests, by operation and status.', 'counter'),
    ...tallies.map(([labels, { count }]) => `${received}{${labels}} ${count}`),
    ...head(duration, 'Time from a request to its answer, by operation and status.', 'histogram'),
    ...tallies.flatMap(([labels, tally]) => tally.lines(duration, labels)),
  ].join('\n')
}
