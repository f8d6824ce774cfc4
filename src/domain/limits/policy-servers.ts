/** Limits on what is asked of the policy servers of rooms. */

/** How long a policy server has to sign an event of ours, and one of another server. It may look at media first. */
export const POLICY_ANSWER_MS = 30_000
export const POLICY_ANSWER_TO_OTHERS_MS = 10_000
/** Requests to one policy server at a time, and requests that wait for their turn. One more fails. Other requests to it need connections too. */
export const MAX_POLICY_REQUESTS_AT_ONCE = 6
export const MAX_POLICY_REQUESTS_WAITING = 500
/** A policy server that did not answer is not asked again for this time: requests to it fail at once. */
export const POLICY_SERVER_PAUSE_MS = 5_000
/** How often an event is signed again because others came into its room meanwhile. */
export const MAX_POLICY_ROUNDS = 16
