/** Limits on the removal of history. */

/** Events that are removed in one transaction: writers of other rooms wait for no more. */
export const EVENTS_PURGED_AT_ONCE = 500
