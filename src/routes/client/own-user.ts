import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { Requester } from '../../domain/accounts/requester.ts'

/** Refuses a path that names another user than the one who calls. */
export function requireOwn({ userId }: Requester, named: UserId): void {
  if (userId !== named) throw new ProtocolError('M_FORBIDDEN', 'This belongs to another user.')
}
