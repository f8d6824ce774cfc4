import type { Logger } from 'pino'
import { type PusherProgress, savePushes } from '../../store/accounts/pushers.ts'
import type { Database } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import type { Gateways } from './gateways.ts'
import type { PushTarget } from './push-target.ts'

/** Saves how far was sent: one position for all pushers, and a row for each that lags behind. It writes what changed, once a second. */
export interface PushRecord {
  changed(queue: PushTarget): void
  /** The stream went on. */
  soon(): void
  close(): Promise<void>
}

const SAVE_EVERY_MS = 1_000
/** A pusher with a notification that waits for longer gets a row of its own, so that the others' position moves on. */
const SLOW_MS = 5_000

export function createPushRecord(parts: {
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly gateways: Pick<Gateways, 'takeNews'>
  /** Everything up to this position was evaluated. */
  position(): number
}): PushRecord {
  const { db, clock, log, gateways } = parts
  /** Those that may have something to send. */
  const active = new Set<PushTarget>()
  /** The saved rows of those that lag. */
  const saved = new Map<number, PusherProgress>()
  let savedPosition = -1
  let timer: NodeJS.Timeout | undefined
  let saving: Promise<void> | undefined
  let isClosed = false

  /** What to save, as of one moment. */
  function take() {
    let position = parts.position()
    const pushers: PusherProgress[] = []
    for (const queue of active) {
      const { sentUpTo, progress, isBehind, waitsSince } = queue
      const before = saved.get(progress.pusher_nid)
      const isSlow = waitsSince !== undefined && waitsSince < clock.now() - SLOW_MS
      if (before || (sentUpTo !== undefined && (isBehind || isSlow))) {
        if (!isSame(before, progress)) pushers.push(progress)
      } else if (sentUpTo !== undefined) position = Math.min(position, sentUpTo)
      if (sentUpTo === undefined) active.delete(queue)
    }
    return { position, pushers, gateways: gateways.takeNews() }
  }

  async function save(): Promise<void> {
    const news = take()
    if (news.position === savedPosition && news.pushers.length + news.gateways.length === 0) return
    await db.tx((tx) => savePushes(tx, news))
    savedPosition = news.position
    for (const progress of news.pushers) {
      if (progress.lags) saved.set(progress.pusher_nid, progress)
      else saved.delete(progress.pusher_nid)
    }
  }

  function soon(): void {
    if (saving === undefined && !isClosed) timer ??= setTimeout(begin, SAVE_EVERY_MS).unref()
  }

  function begin(): void {
    timer = undefined
    saving = save()
      .catch((err) => log.warn({ err }, 'how far was pushed could not be noted; it will be tried again'))
      .finally(() => {
        saving = undefined
        if (active.size > 0 || parts.position() !== savedPosition) soon()
      })
  }

  return {
    changed(queue) {
      active.add(queue)
      soon()
    },
    soon,
    async close() {
      isClosed = true
      clearTimeout(timer)
      await saving
      await save().catch((err) => log.warn({ err }, 'how far was pushed could not be noted'))
    },
  }
}

function isSame(one: PusherProgress | undefined, other: PusherProgress): boolean {
  if (!one) return false
  return (
    one.position === other.position &&
    one.lags === other.lags &&
    one.failures === other.failures &&
    one.failing_since === other.failing_since &&
    one.retry_at === other.retry_at &&
    one.mailed_at === other.mailed_at &&
    one.pause_ms === other.pause_ms
  )
}
