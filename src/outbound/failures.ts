import { NameError } from './names.ts'

/**
 * Why there is no answer: `refused` by our address guard, `forbidden` by our operator, no address for the name (`dns`), nothing listens
 * (`connect`), bad certificate (`tls`), too slow, too long, or not HTTP (`protocol`).
 */
export type FailureKind = 'refused' | 'forbidden' | 'dns' | 'connect' | 'tls' | 'timeout' | 'too-large' | 'protocol'

export interface Failure {
  readonly ok: false
  readonly kind: FailureKind
  /** For logs and operators; it may contain text of the other side. */
  readonly detail: string
}

/** An address that this server must not call. */
export class RefusedError extends Error {}

export class TooLargeError extends Error {
  constructor(maxBytes: number) {
    super(`the answer has more than ${maxBytes} bytes`)
  }
}

/** An answer that did not end in time. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError'
}

/** An answer that comes too slowly to end in time. */
export class DrippingError extends Error {
  constructor() {
    super('it answers too slowly')
  }
}

const CONNECT_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EPIPE',
  'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT',
])
const TLS_CODE = /^(?:CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_CA|EPROTO$)/

export function failureOf(error: unknown): Failure {
  const { name, message, code } = error as NodeJS.ErrnoException
  const failure = (kind: FailureKind, detail = message): Failure => ({ ok: false, kind, detail })
  if (error instanceof RefusedError) return failure('refused')
  if (error instanceof NameError) return failure('dns')
  if (error instanceof TooLargeError) return failure('too-large')
  if (error instanceof DrippingError) return failure('timeout')
  if (name === 'TimeoutError' || name === 'AbortError') return failure('timeout', 'it took too long')
  if (error instanceof AggregateError) return failureOf(error.errors[0])
  if (code !== undefined && TLS_CODE.test(code)) return failure('tls', `its certificate or TLS is not good: ${message}`)
  if (code !== undefined && CONNECT_CODES.has(code)) return failure('connect')
  return failure('protocol')
}
