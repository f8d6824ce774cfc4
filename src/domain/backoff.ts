import type { Random } from './clock.ts'

/** How long to leave somebody alone who did not answer so often: twice as long each time. Not all at once, who were lost at once. */
export function pauseAfter(
  failures: number,
  bounds: { readonly firstMs: number; readonly longestMs: number },
  random: Random,
): number {
  const pause = Math.min(bounds.firstMs * 2 ** Math.min(failures - 1, 20), bounds.longestMs)
  return Math.round(pause * (0.75 + random.bytes(1)[0]! / 512))
}
