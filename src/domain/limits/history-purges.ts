/** Limits on the removal of history. */

/** Events that are removed in one transaction: writers of other rooms wait for no more. */
export const EVENTS_PURGED_AT_ONCE = 500
/** How long the purge of one room by age keeps those of others waiting. One that an operator asked for waits for a step at most. */
export const PURGE_TURN_MS = 5_000
