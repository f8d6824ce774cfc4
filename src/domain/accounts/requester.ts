import type { UserId } from '../../core/ids.ts'
import type { Appservice } from '../appservices/appservice.ts'

/** Who a token stands for. */
export interface Requester {
  readonly userId: UserId
  readonly userNid: number
  /** Empty for a user of an application service who acts through no device. */
  readonly deviceId: string
  /** Changes with every login; the scope of transaction ids. */
  readonly tokenNid: number
  readonly isGuest: boolean
  /** The application service that acts as this user with its own token. */
  readonly appservice?: Appservice
  /** Rate limits do not count for it. */
  readonly isUnlimited?: true
}
