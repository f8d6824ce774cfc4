import type { Logger } from 'pino'
import type { OverviewHistory } from '../domain/admin/views/overview-history.ts'
import { HISTORY_EVERY_MS } from '../domain/limits/console-pages.ts'

/** Looks at the server every few seconds, so that the console can show the last hour. */
export function startOverviewWatcher(history: Pick<OverviewHistory, 'look'>, log: Logger): { close(): void } {
  const look = () =>
    history.look().catch((err: unknown) => log.warn({ err }, 'a look at the server for the console failed'))
  const timer = setInterval(look, HISTORY_EVERY_MS).unref()
  return { close: () => clearInterval(timer) }
}
