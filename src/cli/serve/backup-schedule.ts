import { setTimeout as pause } from 'node:timers/promises'
import type { ClientConfig } from 'pg'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { lastBackup } from '../../store/backup/backup-runs.ts'
import { newestUndone } from '../../store/backup/undone.ts'
import { type Database, openDatabase } from '../../store/db/db.ts'
import type { ChildOutcome } from '../command.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const LOOK_EVERY_MS = 60_000

/** Starts what is configured to be done at intervals. */
export function startBackups(
  { every_hours, journal_minutes, point_in_time }: Config['backup'],
  deps: Omit<Timed, 'run'> & { run(words: readonly string[], signal: AbortSignal): Promise<ChildOutcome> },
): { stop(): Promise<void> } {
  const running: { stop(): Promise<void> }[] = []
  const asked = (words: readonly string[]) => (signal: AbortSignal) => deps.run(words, signal)
  if (every_hours > 0)
    running.push(startBackupSchedule({ ...deps, everyMs: every_hours * HOUR_MS, run: asked(['backup']) }))
  if (journal_minutes > 0)
    running.push(
      startJournalSchedule({
        ...deps,
        isAlways: point_in_time,
        everyMs: journal_minutes * MINUTE_MS,
        run: asked(['backup', 'journal']),
      }),
    )
  return {
    async stop() {
      for (const one of running) await one.stop()
    },
  }
}

interface Timed {
  readonly connection: ClientConfig
  readonly log: Logger
  now(): number
  /** Runs the command, in a process of its own. */
  run(signal: AbortSignal): Promise<ChildOutcome>
  /** How often it looks, and told of each look; for tests. */
  readonly lookEveryMs?: number
  onLook?(): void
}

/** Makes a backup whenever the last one is old enough. A failed one is tried again after an hour. */
export function startBackupSchedule(deps: Timed & { readonly everyMs: number }): { stop(): Promise<void> } {
  const { everyMs, log, now, run, lookEveryMs = LOOK_EVERY_MS } = deps
  let ranAt = Number.NEGATIVE_INFINITY
  return lookAgainAndAgain({ ...deps, lookEveryMs }, async (db, signal) => {
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
  })
}

/** Has what ended written beside the newest backup: always, or if anything ended since the last time. A failure is tried again the next time. */
export function startJournalSchedule(deps: Timed & { readonly everyMs: number; readonly isAlways: boolean }): {
  stop(): Promise<void>
} {
  const { everyMs, isAlways, log, run, lookEveryMs = everyMs } = deps
  let written = 0
  return lookAgainAndAgain({ ...deps, lookEveryMs }, async (db, signal) => {
    const newest = await newestUndone(db)
    if (newest === written && !isAlways) return
    const { code, output } = await run(signal)
    if (signal.aborted) return
    if (code === 0) written = newest
    else
      log.error(
        { output: output.trim().slice(-2_000) },
        'what ended, or the log of Postgres, is not beside the backups as it should be',
      )
  })
}

function lookAgainAndAgain(
  { connection, log, lookEveryMs, onLook }: Timed & { readonly lookEveryMs: number },
  look: (db: Database, signal: AbortSignal) => Promise<void>,
): { stop(): Promise<void> } {
  const db = openDatabase({ connection, poolSize: 1 })
  const closing = new AbortController()
  const { signal } = closing

  async function work(): Promise<void> {
    while (!signal.aborted) {
      await look(db, signal).catch((err) => log.warn({ err }, 'whether a backup is due could not be found out'))
      onLook?.()
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
