/** Counts how often a limit of `limits.ts` refused something. Limits with a metric of their own are left out. */
export interface BoundMetrics {
  reached(bound: Bound, times?: number): void
}

/**
 * What was refused: requests to other servers on behalf of a user, account data, push rules, a body that was not encoded again to check its
 * signature, a file for which the disk is too full, invitations of other servers that are too large or too many, and events of the
 * stripped state that do not fit.
 */
export type Bound =
  | 'fan-out'
  | 'account data'
  | 'push rules'
  | 'rewritten body'
  | 'disk reserve'
  | 'invitation size'
  | 'open invitations'
  | 'stripped state'
