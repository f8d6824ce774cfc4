import type { UserId } from '../../core/ids.ts'

/** Who an access token of the identity service stands for: a user of any homeserver. */
export interface IdentityRequester {
  readonly userId: UserId
  /** Changes with every registration; never used again. */
  readonly tokenNid: number
}
