/** Limits on unread counts. */

/**
 * Threads of a room in which a user's unread events are counted: those that were active last. Anybody in a room can begin threads, and each
 * unread one is in every sync of the room.
 */
export const MAX_UNREAD_THREADS = 500

/**
 * Unread events of a timeline in which the senders whom the reader ignores are looked for: the newest. What ignored users said before them
 * counts. Without this, a first sync of somebody who ignores one person would read everything that was said in rooms that they never read.
 */
export const MAX_UNREAD_LOOKED_AT = 10_000

/** Users of one change of an ignore list for whom its time is kept, and how many past times an account keeps. */
export const MAX_IGNORED_NOTED = 1_000
export const MAX_IGNORED_BEFORE = 1_000
