import type { Random } from './clock.ts'

/**
 * How long to wait after so many failures in a row: each pause is twice as long as the one before. A random part spreads the retries of
 * those that failed together.
 */
export function pauseAfter(
  failures: number,
  bounds: { readonly firstMs: number; readonly longestMs: number },
  random: Random,
): number {
  const pause = Math.min(bounds.firstMs * 2 ** Math.min(failures - 1, 20), bounds.longestMs)
  return Math.round(pause * (0.75 + random.bytes(1)[0]! / 512))
}
