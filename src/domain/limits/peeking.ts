/** Limits on the endpoints by which rooms are previewed: `initialSync` and `events`. */

/** Messages of each room in an initial sync: by default, and at most. */
export const INITIAL_MESSAGES = 20
export const MAX_INITIAL_MESSAGES = 100

/** How long a request for new events may wait, and how many it answers with. */
export const MAX_EVENTS_WAIT_MS = 30_000
export const MAX_EVENTS_PER_POLL = 100
