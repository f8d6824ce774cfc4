import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { Requester } from '../../domain/accounts/requester.ts'

/** Refuses a path that names another user than the caller. */
export function requireOwn({ userId }: Requester, named: UserId): void {
  if (userId !== named) throw new ProtocolError('M_FORBIDDEN', 'This belongs to another user.')
}

/** Guests may set their name and picture only. */
export function requireGuestsField({ isGuest }: Requester, field: string): void {
  if (!isGuest || field === 'displayname' || field === 'avatar_url') return
  throw new ProtocolError('M_GUEST_ACCESS_FORBIDDEN', 'Guests may set their display name and avatar, and nothing else.')
}
