import type { Logger } from 'pino'
import { createCache } from '../../../core/cache.ts'
import type { ServerName } from '../../../core/ids.ts'
import type { Clock } from '../../clock.ts'
import { MAX_LOGGED_DESTINATIONS } from '../../limits.ts'

type Severity = 'info' | 'warn' | 'error'

/** It has everything; it is being sent something; it waits for its turn; it does not answer; or it has not answered for long. */
export type DestinationState = 'idle' | 'sending' | 'waiting' | 'failing' | 'gone'

/** How sending to a server goes, for operators. Times are milliseconds; null where nothing failed since the process started. */
export interface DestinationStatus {
  readonly failures: number
  readonly failingSince: number | null
  readonly triedAt: number | null
  readonly retryAt: number
  /** Why the last attempt failed, in words. */
  readonly lastError: string | null
  /** Events in memory that wait. There may be more in the database. */
  readonly waiting: number
}

/**
 * The log of destinations: at most one line a minute for each server, unless a more severe one comes. The next line says how many were
 * left out.
 */
export type DestinationLog = (
  severity: Severity,
  server: ServerName,
  fields: Readonly<Record<string, unknown>>,
  text: string,
) => void

const GRAVITY: Readonly<Record<Severity, number>> = { info: 0, warn: 1, error: 2 }
const QUIET_MS = 60_000

interface Said {
  readonly at: number
  readonly gravity: number
  unsaid: number
}

export function createDestinationLog(deps: {
  readonly log: Pick<Logger, Severity>
  readonly clock: Clock
}): DestinationLog {
  const { log, clock } = deps
  const last = createCache<ServerName, Said>(MAX_LOGGED_DESTINATIONS)
  return (severity, server, fields, text) => {
    const before = last.get(server)
    const gravity = GRAVITY[severity]
    const isQuiet = before !== undefined && clock.now() - before.at < QUIET_MS
    if (isQuiet && gravity <= before.gravity) return void before.unsaid++
    const unsaid = before?.unsaid ?? 0
    last.set(server, { at: clock.now(), gravity, unsaid: 0 })
    log[severity]({ server, ...fields, ...(unsaid > 0 && { unsaid }) }, text)
  }
}
