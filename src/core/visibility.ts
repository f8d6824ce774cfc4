import type { HistoryVisibility, Membership } from './event/content.ts'

/** The facts that decide on an event, from the room's state before or after it. */
export interface VisibilityState {
  /** As `historyVisibilityOf` reads it: `shared` if it is not set or unknown. */
  readonly visibility: HistoryVisibility
  /** The membership of the user who wants to see the event. */
  readonly membership: Membership
}

/**
 * Whether a user may see an event (client-server API, "Room History Visibility", server behaviour).
 *
 * @param before the room before the event
 * @param joinedSince whether the user joined at any time after the event
 * @param after the room after the event: it differs only for `m.room.history_visibility` and the user's own `m.room.member`,
 *   which the user may see if the state on either side allows it
 */
export function canSeeEvent(before: VisibilityState, joinedSince: boolean, after: VisibilityState = before): boolean {
  return lets(before, joinedSince) || lets(after, joinedSince)
}

function lets({ visibility, membership }: VisibilityState, joinedSince: boolean): boolean {
  // 1. Everybody may see world-readable events.
  if (visibility === 'world_readable') return true
  // 2. A user who was joined may see it.
  if (membership === 'join') return true
  // 3. Users who joined later may see shared history.
  if (visibility === 'shared') return joinedSince
  // 4. With `invited`, invited users may see it. 5. Nobody else may.
  return visibility === 'invited' && membership === 'invite'
}
