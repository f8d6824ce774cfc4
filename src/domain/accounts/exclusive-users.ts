import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'

/** User names that only application services may take. */
export interface ExclusiveUsers {
  isReserved(userId: UserId): boolean
}

export const NONE_RESERVED: ExclusiveUsers = { isReserved: () => false }

/** @throws ProtocolError `M_EXCLUSIVE` */
export function requireUnreserved(exclusive: ExclusiveUsers, userId: UserId): void {
  if (exclusive.isReserved(userId)) {
    throw new ProtocolError('M_EXCLUSIVE', 'This user name is kept for an application service. Please choose another.')
  }
}
