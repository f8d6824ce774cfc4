/** Limits on unread counts. */

/**
 * Threads of a room in which a user's unread events are counted: those that were active last. Anybody in a room can begin threads, and each
 * unread one is in every sync of the room.
 */
export const MAX_UNREAD_THREADS = 500

/** Users that one change of a list adds or removes of whom it is noted when, and times that are over which are remembered of an account. */
export const MAX_IGNORED_NOTED = 1_000
export const MAX_IGNORED_BEFORE = 1_000
