import type { Bound, BoundMetrics } from '../../src/domain/bound-metrics.ts'

/** How often a bound was reached, of the text that operators are told. */
export async function reached(metrics: Promise<string>, bound: Bound): Promise<number> {
  const line = new RegExp(`^hearth_bounds_reached_total\\{bound="${bound}"\\} (\\d+)$`, 'm')
  return Number(line.exec(await metrics)?.[1] ?? 0)
}

/** For what is made without a server. */
export const NO_BOUNDS: BoundMetrics = { reached: () => {} }
