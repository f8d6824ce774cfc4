import { groupBy } from '../src/core/group-by.ts'

/** One line of the results table. Absent figures were not measured or cannot be had from outside. */
export interface Measurement {
  readonly benchmark: string
  readonly variant: string
  readonly perSecond?: number
  readonly p50Ms?: number
  readonly p99Ms?: number
  /** CPU time per operation. */
  readonly serverCpuMs?: number
  readonly postgresCpuMs?: number
  /** The largest resident size of the server process so far, and the proportional size of all Postgres processes. */
  readonly serverPeakMb?: number
  readonly postgresMb?: number
  readonly diskBytesPerOperation?: number
  readonly note?: string
}

export interface Latencies {
  readonly p50Ms: number
  readonly p99Ms: number
}

export function latenciesOf(valuesMs: readonly number[]): Latencies {
  return { p50Ms: percentile(valuesMs, 0.5), p99Ms: percentile(valuesMs, 0.99) }
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const now = () => performance.now()

/** Milliseconds of the one clock that all processes of a machine share. */
export const sharedNow = () => Number(process.hrtime.bigint()) / 1e6

/** The figure without its undefined parts, as `exactOptionalPropertyTypes` wants it. */
export function measurement(
  figures: { [Key in keyof Measurement]: Measurement[Key] | undefined } & { benchmark: string; variant: string },
): Measurement {
  const known = Object.entries(figures).filter(([, value]) => value !== undefined && !Number.isNaN(value))
  return Object.fromEntries(known) as unknown as Measurement
}

/** One measurement for all of the same benchmark and variant, with the median of each figure. */
export function mediansOf(measured: readonly Measurement[]): Measurement[] {
  const groups = groupBy(measured, ({ benchmark, variant }) => `${benchmark} ${variant}`)
  return [...groups.values()].map((group) => {
    const last = group.at(-1)!
    const figures = Object.entries(last).map(([name, value]) => {
      if (typeof value !== 'number') return [name, value]
      const values = group.map((one) => one[name as keyof Measurement]).filter((one) => typeof one === 'number')
      return [name, percentile(values, 0.5)]
    })
    return Object.fromEntries(figures) as Measurement
  })
}
