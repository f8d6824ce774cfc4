import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Database } from '../../store/db/db.ts'
import { sumScheduled } from '../../store/rooms/delayed-events.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock } from '../clock.ts'
import {
  DELAYED_SUMS_EVERY_MS,
  MAX_DELAYED_BYTES,
  MAX_DELAYED_BYTES_PER_USER,
  MAX_DELAYED_CONTENT_BYTES,
  MAX_DELAYED_EVENTS,
} from '../limits/delayed-events.ts'

/** How much may wait: of a user, and of all. */
export interface DelayedQuota {
  /** @throws ProtocolError `M_FORBIDDEN` when the delay is too long, or nothing may be delayed at all */
  mustBeAllowed(wish: { readonly delayMs: number; readonly isOldForm: boolean }): void
  /** Counts one more. @throws ProtocolError `M_LIMIT_EXCEEDED`, with the time of the user's next event; `M_TOO_LARGE` */
  take(by: Requester, bytes: number): Promise<void>
}

/** The limits as clients read them. */
export function delayedEventLimits({ calls }: Pick<Config, 'calls'>): JsonObject {
  const { max_delay_seconds, max_scheduled } = calls.delayed_events
  return { max_delay_ms: max_delay_seconds * 1000, max_scheduled }
}

export function createDelayedQuota({
  config,
  db,
  clock,
}: {
  readonly config: Pick<Config, 'calls'>
  readonly db: Database
  readonly clock: Clock
}): DelayedQuota {
  const { max_delay_seconds, max_scheduled } = config.calls.delayed_events
  const maxDelayMs = max_delay_seconds * 1000
  // The sums over all users: read now and then, and counted up in between.
  let events = 0
  let bytes = 0
  let readAt = Number.NEGATIVE_INFINITY

  async function sumAll(now: number): Promise<void> {
    if (now - readAt < DELAYED_SUMS_EVERY_MS) return
    const all = await sumScheduled(db)
    events = all.events
    bytes = all.bytes
    readAt = now
  }

  return {
    mustBeAllowed({ delayMs, isOldForm }) {
      if (max_scheduled === 0) throw new ProtocolError('M_FORBIDDEN', 'This server delays no events.')
      if (delayMs <= maxDelayMs) return
      throw new ProtocolError(isOldForm ? 'M_UNKNOWN' : 'M_FORBIDDEN', `An event may wait ${maxDelayMs} ms at most.`, {
        status: isOldForm ? 400 : 403,
        extra: { 'org.matrix.msc4140.errcode': 'M_MAX_DELAY_EXCEEDED', 'org.matrix.msc4140.max_delay': maxDelayMs },
      })
    },
    async take(by, more) {
      if (more > MAX_DELAYED_CONTENT_BYTES) throw new ProtocolError('M_TOO_LARGE', 'No event may be this large.')
      const now = clock.now()
      const own = await sumScheduled(db, by.userNid)
      if (own.events >= max_scheduled || own.bytes + more > MAX_DELAYED_BYTES_PER_USER) {
        throw new ProtocolError('M_LIMIT_EXCEEDED', 'You have too many delayed events. Cancel some, or wait.', {
          extra: { retry_after_ms: Math.max(1, (own.first_due ?? now) - now) },
        })
      }
      await sumAll(now)
      if (events >= MAX_DELAYED_EVENTS || bytes + more > MAX_DELAYED_BYTES) {
        throw new ProtocolError(
          'M_LIMIT_EXCEEDED',
          'This server has too many delayed events just now. Try again later.',
          {
            extra: { retry_after_ms: DELAYED_SUMS_EVERY_MS },
          },
        )
      }
      events += 1
      bytes += more
    },
  }
}
