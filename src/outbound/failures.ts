import { NameError } from './names.ts'

/**
 * Why there is no answer: `refused` by us, `forbidden` by our operator, the name has no address (`dns`), nothing listens (`connect`), the certificate is not good
 * (`tls`), it took too long, said too much, or did not speak HTTP (`protocol`).
 */
export type FailureKind = 'refused' | 'forbidden' | 'dns' | 'connect' | 'tls' | 'timeout' | 'too-large' | 'protocol'

export interface Failure {
  readonly ok: false
  readonly kind: FailureKind
  /** For logs and operators; it may hold what the other side said. */
  readonly detail: string
}

/** What this server does not call. */
export class RefusedError extends Error {}

export class TooLargeError extends Error {
  constructor(maxBytes: number) {
    super(`the answer has more than ${maxBytes} bytes`)
  }
}

/** An answer that comes so slowly that it would come to no end. */
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
