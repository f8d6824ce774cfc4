import { BODY_GRACE_SECONDS, MAX_BODY_SECONDS, MIN_BODY_BYTES_PER_SECOND } from '../domain/limits.ts'

/** A body on its way. */
export interface Arriving {
  bytes: number
  seconds: number
  readonly isFile: boolean
  /** Its time is over, or it came slower than it may. */
  tooSlow(): void
}

/** The bodies that are on their way. One clock for all, which stands still while there are none. */
export class ArrivingBodies {
  readonly #secondMs: number
  readonly #arriving = new Set<Arriving>()
  #clock: NodeJS.Timeout | undefined

  /** @param secondMs how long a second is: less where a test cannot wait for so many */
  constructor(secondMs: number) {
    this.#secondMs = secondMs
  }

  /** What came of those that stay in memory. */
  readonly bytes = (): number => {
    let sum = 0
    for (const { bytes, isFile } of this.#arriving) if (!isFile) sum += bytes
    return sum
  }

  enter(body: Arriving): void {
    this.#arriving.add(body)
    this.#clock ??= setInterval(() => this.#tick(), this.#secondMs).unref()
  }

  leave(body: Arriving): void {
    this.#arriving.delete(body)
  }

  #tick(): void {
    if (this.#arriving.size === 0) {
      clearInterval(this.#clock)
      this.#clock = undefined
    }
    for (const body of this.#arriving) {
      body.seconds++
      if (isTooSlow(body)) body.tooSlow()
    }
  }
}

function isTooSlow({ bytes, seconds, isFile }: Arriving): boolean {
  if (!isFile && seconds > MAX_BODY_SECONDS) return true
  return seconds >= BODY_GRACE_SECONDS && bytes < seconds * MIN_BODY_BYTES_PER_SECOND
}
