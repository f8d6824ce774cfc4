import type { Logger } from 'pino'
import type { Sweep } from '../domain/media/sweep.ts'

/** Removes expired media every hour. */
export interface MediaSweeper {
  close(): Promise<void>
}

const EVERY_MS = 3_600_000

export function startMediaSweeper({ sweep, log }: { readonly sweep: Sweep; readonly log: Logger }): MediaSweeper {
  let running: Promise<unknown> = Promise.resolve()
  const timer = setInterval(() => {
    // After a failure the next round, in an hour, tries again.
    running = sweep.round().then(
      ({ media, contents }) => (media + contents > 0 ? log.info({ media, contents }, 'removed old media') : undefined),
      (err: unknown) => log.warn({ err }, 'sweeping media failed'),
    )
  }, EVERY_MS).unref()
  return {
    async close() {
      clearInterval(timer)
      await running
    },
  }
}
