import { ProtocolError } from '../../core/errors.ts'

/** The error while the store cannot be used. Nothing was lost, and the request may be repeated. */
export class StoreFailure extends ProtocolError {
  constructor(cause: unknown) {
    super('M_UNKNOWN', 'The store of media cannot be used just now. Try again in a few minutes.', {
      status: 503,
      extra: { retry_after_ms: 60_000 },
    })
    this.cause = cause
  }
}
