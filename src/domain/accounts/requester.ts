import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { Appservice } from '../appservices/appservice.ts'

/** The user who made a request, as its token shows. */
export interface Requester {
  readonly userId: UserId
  readonly userNid: number
  /** Empty for a user of an application service who acts without a device. */
  readonly deviceId: string
  /** Every login gives another one. */
  readonly tokenNid: number
  /** Earlier logins of the device: their transaction ids count too. Absent if there are none. */
  readonly earlierTokens?: readonly number[]
  readonly isGuest: boolean
  /** The application service that acts as this user with its own token. */
  readonly appservice?: Appservice
  /** Whether the session came from OAuth: its client cannot ask for a password, and sends people to the account page instead. */
  readonly isOauth?: true
  /** Whether rate limits do not apply. */
  readonly isUnlimited?: true
  /** A locked account may end its sessions and nothing else. */
  readonly isLocked?: boolean
  /** A suspended account may read, and may write to nobody. */
  readonly isSuspended?: boolean
}

/** The error for a locked account. Its sessions work again once it is unlocked (client-server API, "Account locking"). */
export function accountLocked(): ProtocolError {
  return new ProtocolError('M_USER_LOCKED', 'This account is locked. Ask the administrators of this server.', {
    extra: { soft_logout: true },
  })
}

/** The error for a suspended account (client-server API, "Account suspension"). */
export function accountSuspended(): ProtocolError {
  return new ProtocolError('M_USER_SUSPENDED', 'This account is suspended: it can read, and not do this.')
}
