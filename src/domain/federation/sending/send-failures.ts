import { ProtocolError } from '../../../core/errors.ts'
import { MAX_RETRY_AFTER_MS } from '../../limits.ts'

/** The transaction is at fault and not the server: the same one would get the same answer again. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ProtocolError && (error.status === 400 || error.status === 413)
}

export const isLimit = (error: unknown): boolean => error instanceof ProtocolError && error.status === 429

/** The pause that a server asks for, within limits. */
export function retryAfterOf(error: unknown): number | undefined {
  const ms = error instanceof ProtocolError ? error.extra.retry_after_ms : undefined
  return typeof ms === 'number' ? Math.min(ms, MAX_RETRY_AFTER_MS) : undefined
}
