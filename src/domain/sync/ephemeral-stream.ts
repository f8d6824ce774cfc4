import type { Random } from '../clock.ts'

/** The stream of what lives in memory and ends with the process: typing and presence. */
export interface EphemeralStream {
  /** Distinguishes the positions of this process from those of earlier ones. */
  readonly run: string
  /** The position that was taken last. */
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
