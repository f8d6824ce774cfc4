import type { Logger } from 'pino'

/** Work that is queued in the database until it is done. */
export interface DueWork {
  /** How often to look for work without a wake-up. */
  readonly everyMs: number
  /** The log message for a failure; the work is tried again. */
  readonly failure: string
  readonly log: Logger
  /** Registers a listener that is called when there is new work. */
  onWake(listener: () => void): void
  /** Does all due work, until `isClosed`. */
  run(isClosed: () => boolean): Promise<unknown>
}

/** Does due work at the start, on each wake-up and at intervals. `close` waits for work that has begun. */
export function startDueWork({ everyMs, failure, log, onWake, run }: DueWork): { close(): Promise<void> } {
  let closed = false
  let running: Promise<void> | undefined
  let again = false

  async function rounds(): Promise<void> {
    do {
      again = false
      await run(() => closed).catch((err: unknown) => log.warn({ err }, failure))
    } while (again && !closed)
  }

  /** Runs one round at a time. A call during a round causes another round after it. */
  function start(): void {
    again = true
    if (closed || running !== undefined) return
    running = rounds().finally(() => {
      running = undefined
    })
  }

  const timer = setInterval(start, everyMs).unref()
  onWake(start)
  start()

  return {
    async close() {
      closed = true
      clearInterval(timer)
      await running
    },
  }
}

/** Repeats a step of work until there is none left. */
export const untilNone =
  (next: () => Promise<number>): DueWork['run'] =>
  async (isClosed) => {
    while (!isClosed() && (await next()) > 0);
  }
