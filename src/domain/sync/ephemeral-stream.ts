import type { Random } from '../clock.ts'

/** The stream of what lives in memory and ends with the process: who types, and how users are. */
export interface EphemeralStream {
  /** Tells the positions of this process from those of others. */
  readonly run: string
  /** The newest position that was taken. */
  position(): number
  /** Takes the next position. */
  next(): number
}

export function createEphemeralStream(random: Random): EphemeralStream {
  let newest = 0
  return {
    run: random.bytes(6).toString('hex'),
    position: () => newest,
    next: () => ++newest,
  }
}
