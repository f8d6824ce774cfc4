import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { Appservice } from '../appservices/appservice.ts'

/** Who a token stands for. */
export interface Requester {
  readonly userId: UserId
  readonly userNid: number
  /** Empty for a user of an application service who acts through no device. */
  readonly deviceId: string
  /** Changes with every login. */
  readonly tokenNid: number
  /** Those of other logins of the device, whose transaction ids count too; none where they are not given. */
  readonly earlierTokens?: readonly number[]
  readonly isGuest: boolean
  /** The application service that acts as this user with its own token. */
  readonly appservice?: Appservice
  /** Rate limits do not count for it. */
  readonly isUnlimited?: true
  /** May end its sessions, and nothing else. */
  readonly isLocked?: boolean
  /** Reads, and writes to nobody. */
  readonly isSuspended?: boolean
}

/** A locked account: its sessions go on once it is unlocked (client-server API, "Account locking"). */
export function accountLocked(): ProtocolError {
  return new ProtocolError('M_USER_LOCKED', 'This account is locked. Ask the administrators of this server.', {
    extra: { soft_logout: true },
  })
}

/** Client-server API, "Account suspension". */
export function accountSuspended(): ProtocolError {
  return new ProtocolError('M_USER_SUSPENDED', 'This account is suspended: it can read, and not do this.')
}
