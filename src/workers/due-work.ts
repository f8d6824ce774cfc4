import type { Logger } from 'pino'

/** Work that comes up now and then, and stays in the database until it is done. */
export interface DueWork {
  /** How often it is looked for when nobody tells of it. */
  readonly everyMs: number
  /** What is logged when it fails; it is tried again. */
  readonly failure: string
  readonly log: Logger
  /** Calls whenever some has come up. */
  onWake(listener: () => void): void
  /** Does what is due, until `isClosed`. */
  run(isClosed: () => boolean): Promise<unknown>
}

/** Does what is due at the start, when it is told of some, and now and then. What is under way is finished on `close`. */
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

  /** One round at a time: a call during a round is one more round after it. */
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

/** Takes one piece after another for as long as there is some. */
export const untilNone =
  (next: () => Promise<number>): DueWork['run'] =>
  async (isClosed) => {
    while (!isClosed() && (await next()) > 0);
  }
