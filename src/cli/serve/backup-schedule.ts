import { setTimeout as pause } from 'node:timers/promises'
import type { ClientConfig } from 'pg'
import type { Logger } from 'pino'
import { lastBackup } from '../../store/backup/backup-runs.ts'
import { openDatabase } from '../../store/db/db.ts'
import type { ChildOutcome } from '../command.ts'

const HOUR_MS = 3_600_000
const LOOK_EVERY_MS = 60_000

/** Makes a backup whenever the last one is old enough. A failed one is tried again after an hour. */
export function startBackupSchedule(deps: {
  readonly connection: ClientConfig
  readonly everyMs: number
  readonly log: Logger
  now(): number
  /** Makes one, in a process of its own. */
  run(signal: AbortSignal): Promise<ChildOutcome>
  /** How often it looks; for tests. */
  readonly lookEveryMs?: number
}): { stop(): Promise<void> } {
  const { everyMs, log, now, run, lookEveryMs = LOOK_EVERY_MS } = deps
  const db = openDatabase({ connection: deps.connection, poolSize: 1 })
  const closing = new AbortController()
  const { signal } = closing
  let ranAt = Number.NEGATIVE_INFINITY

  async function look(): Promise<void> {
    const ranLately = now() >= ranAt && now() < ranAt + Math.min(everyMs, HOUR_MS)
    if (ranLately) return
    const last = (await lastBackup(db))?.ended_at ?? Number.NEGATIVE_INFINITY
    // A clock that was set back must not stop backups for as long.
    if (now() < last + everyMs && now() >= last) return
    ranAt = now()
    const { code, output } = await run(signal)
    if (signal.aborted) return
    const text = output.trim().slice(-2_000)
    if (code === 0) log.info({ output: text }, 'a backup was made')
    else log.error({ output: text }, 'a backup failed; it is tried again within the hour')
  }

  async function work(): Promise<void> {
    while (!signal.aborted) {
      await look().catch((err) => log.warn({ err }, 'whether a backup is due could not be found out'))
      await pause(lookEveryMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  const working = work()
  return {
    async stop() {
      closing.abort()
      await working
      await db.close()
    },
  }
}
