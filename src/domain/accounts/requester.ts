import type { UserId } from '../../core/ids.ts'

/** Who a token stands for. */
export interface Requester {
  readonly userId: UserId
  readonly userNid: number
  readonly deviceId: string
  /** Changes with every login; the scope of transaction ids. */
  readonly tokenNid: number
  readonly isGuest: boolean
}
