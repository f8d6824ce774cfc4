const PORTION = 5_000

/** Has many rows made a portion at a time, so that the database makes each in the time of a statement, however busy the machine is. */
export async function inPortions(count: number, make: (from: number, to: number) => Promise<unknown>): Promise<void> {
  for (let from = 1; from <= count; from += PORTION) await make(from, Math.min(count, from + PORTION - 1))
}
