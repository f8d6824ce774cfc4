import type { UserId } from '../../core/ids.ts'

/** The user of an identity service access token: a user of any homeserver. */
export interface IdentityRequester {
  readonly userId: UserId
  /** Every registration gets a new one; it is never reused. */
  readonly tokenNid: number
}
