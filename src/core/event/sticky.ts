import type { Pdu } from './format.ts'

/** Where an event says how long it is sticky, until MSC4354 is accepted. */
export const STICKY = 'msc4354_sticky'
/** The longest time for which an event may be sticky. */
export const MAX_STICKY_MS = 3_600_000

/**
 * How long an event is sticky, in milliseconds (MSC4354); undefined for one that is not. Other values than the text allows make no sticky
 * event.
 */
export function stickyMsOf({ [STICKY]: sticky }: Pick<Pdu, typeof STICKY>): number | undefined {
  const ms: unknown = sticky?.duration_ms
  const isValid = typeof ms === 'number' && Number.isInteger(ms) && ms >= 0 && ms <= MAX_STICKY_MS
  return isValid ? ms : undefined
}

/** Until when an event is sticky, in milliseconds. Its server may say that it was sent later than it came here. */
export function stickyUntil(sentAt: number, receivedAt: number, stickyMs: number): number {
  return Math.min(sentAt, receivedAt) + stickyMs
}
