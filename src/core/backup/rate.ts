/** How fast a backup reads, in bytes of rows and media a second. */
export interface Rate {
  readonly bytesPerSecond: number
  /** Milliseconds that others waited while the backup rested: what is usual now. */
  noteAtRest(delays: readonly number[]): void
  /** The same while it worked. */
  noteAtWork(delays: readonly number[]): void
}

export interface RateBounds {
  /** However busy the others are, a backup comes to its end. */
  readonly least: number
  readonly first: number
  readonly most: number
}

/** Others may wait so much longer than usual before the backup reads more slowly. */
const TOLERATED = 1.25
const TOLERATED_MS = 0.5
const SLOWER = 0.7
const FASTER = 1.15
/** How much the newest rest says about what is usual. */
const WEIGHT_OF_REST = 0.4

/** A rate that falls while others wait longer than without the backup, and rises again afterwards. */
export function createRate({ least, first, most }: RateBounds): Rate {
  let bytesPerSecond = first
  let usual: number | undefined
  return {
    get bytesPerSecond() {
      return bytesPerSecond
    },
    noteAtRest(delays) {
      if (delays.length === 0) return
      const mean = meanOf(delays)
      usual = usual === undefined ? mean : usual + (mean - usual) * WEIGHT_OF_REST
    },
    noteAtWork(delays) {
      if (delays.length === 0 || usual === undefined) return
      const isTooMuch = meanOf(delays) > usual * TOLERATED + TOLERATED_MS
      bytesPerSecond = Math.min(most, Math.max(least, bytesPerSecond * (isTooMuch ? SLOWER : FASTER)))
    },
  }
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
