/**
 * How the two texts of the proposal (MSC4186) differ in what they show of a room: `client/v4/sync`, which was merged, and
 * `org.matrix.simplified_msc3575`, which clients had before.
 */
export interface SlidingShape {
  readonly expandedTimeline: string
  readonly strippedState: string
  /** The membership, and the lists that the room is in. Without it, clients read the membership from the state. */
  readonly hasMembership: boolean
  /** Unread counts; otherwise clients count themselves. */
  readonly hasUnread: boolean
  /** A removed name is null, and removed state a key without content. */
  readonly showsRemoved: boolean
  /** Receipts and typing come as whole events; otherwise as their contents. */
  readonly hasEphemeralEvents: boolean
}

export const MERGED: SlidingShape = {
  expandedTimeline: 'expanded_timeline',
  strippedState: 'stripped_state',
  hasMembership: true,
  hasUnread: false,
  showsRemoved: true,
  hasEphemeralEvents: false,
}

export const UNSTABLE: SlidingShape = {
  expandedTimeline: 'unstable_expanded_timeline',
  strippedState: 'invite_state',
  hasMembership: false,
  hasUnread: true,
  showsRemoved: false,
  hasEphemeralEvents: true,
}
