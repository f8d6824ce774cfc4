import { hash } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { Medium } from '../../core/threepid.ts'
import type { Database } from '../../store/db/db.ts'
import { takeFromBucket } from '../../store/identity/send-limits.ts'
import type { Clock } from '../clock.ts'

/** A message that is about to be sent. */
export interface Sending {
  readonly medium: Medium
  readonly address: string
  /** The requester: a user id, or a network address if there is no user. */
  readonly sender: string
  /** The country of a phone number. */
  readonly region?: string
}

export interface SendLimits {
  /**
   * Counts a message for its address, its sender and its country. @throws ProtocolError 429 `M_LIMIT_EXCEEDED`; then nothing is counted
   */
  take(sending: Sending): Promise<void>
}

const HOUR_MS = 3_600_000

/**
 * Prevents anybody from flooding a mailbox or running up a gateway's bill. The counts are rows, so neither a restart nor another client
 * secret nor a higher send attempt resets them.
 */
export function createSendLimits(deps: {
  readonly config: Pick<Config, 'identity'>
  readonly db: Database
  readonly clock: Clock
}): SendLimits {
  const { db, clock } = deps
  const limits = deps.config.identity.sessions.messages_per_hour

  function bucketsOf({ medium, address, sender, region }: Sending) {
    const sizes: [string, number][] = [
      [`address ${medium} ${address}`, medium === 'email' ? limits.mails_to_address : limits.sms_to_address],
      [`sender ${medium} ${sender}`, medium === 'email' ? limits.mails_of_sender : limits.sms_of_sender],
    ]
    if (region !== undefined) sizes.push([`region ${region}`, limits.sms_to_country])
    return sizes
      .filter(([, size]) => size > 0)
      .map(([key, size]) => ({ key: hash('sha256', key, 'buffer'), size, periodMs: HOUR_MS }))
      .sort((a, b) => a.key.compare(b.key))
  }

  return {
    async take(sending) {
      const now = clock.now()
      await db.tx(async (tx) => {
        for (const bucket of bucketsOf(sending)) {
          const wait = await takeFromBucket(tx, bucket, now)
          if (wait === 0) continue
          throw new ProtocolError('M_LIMIT_EXCEEDED', 'Too many messages were asked for. Wait before the next.', {
            extra: { retry_after_ms: wait },
          })
        }
      })
    },
  }
}
