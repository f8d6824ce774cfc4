import type { Random } from '../clock.ts'

/** The stream of what lives in memory and ends with the process: typing and presence. */
export interface EphemeralStream {
  /** Distinguishes the positions of this process from those of earlier ones. Ends with the epoch: see `epochOf`. */
  readonly run: string
  /** The position that was taken last. */
  position(): number
  /** Takes the next position. */
  next(): number
}

/**
 * @param epoch of the database's last restore
 * @param moved called when a position is taken
 */
export function createEphemeralStream(random: Random, epoch: string, moved: () => void): EphemeralStream {
  let newest = 0
  return {
    run: random.bytes(6).toString('hex') + epoch,
    position: () => newest,
    next() {
      newest += 1
      moved()
      return newest
    },
  }
}
