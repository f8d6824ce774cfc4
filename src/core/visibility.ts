import type { HistoryVisibility, Membership } from './event/content.ts'

/** What decides about an event, in the room's state before it or after it. */
export interface VisibilityState {
  /** As `historyVisibilityOf` reads it: `shared` where nothing known is said. */
  readonly visibility: HistoryVisibility
  /** The membership of the user who wants to see the event. */
  readonly membership: Membership
}

/**
 * Whether a user may see an event (client-server API, "Room History Visibility", server behaviour).
 *
 * @param before the room before the event
 * @param joinedSince whether the user joined at any time after the event; who is in the room now, and was not then, has
 * @param after the room after the event: it differs only for `m.room.history_visibility` and the user's own `m.room.member`,
 *   which are seen when either side would let them be
 */
export function canSeeEvent(before: VisibilityState, joinedSince: boolean, after: VisibilityState = before): boolean {
  return lets(before, joinedSince) || lets(after, joinedSince)
}

function lets({ visibility, membership }: VisibilityState, joinedSince: boolean): boolean {
  // 1. World-readable events are for everyone.
  if (visibility === 'world_readable') return true
  // 2. Who was in the room has seen it.
  if (membership === 'join') return true
  // 3. Shared history is for all who come later.
  if (visibility === 'shared') return joinedSince
  // 4. Some rooms let the invited read along. 5. Nobody else sees it.
  return visibility === 'invited' && membership === 'invite'
}
