/** How often the bounds of `limits.ts` have held something back that no other metric counts. */
export interface BoundMetrics {
  reached(bound: Bound, times?: number): void
}

/**
 * Other servers that a user's request was not to reach, account data, a body that was not written anew for its signature, a file for
 * which the disk is too full; and of invitations by other servers those that are too large or too many, and events of the stripped
 * state that do not fit.
 */
export type Bound =
  | 'fan-out'
  | 'account data'
  | 'rewritten body'
  | 'disk reserve'
  | 'invitation size'
  | 'open invitations'
  | 'stripped state'
