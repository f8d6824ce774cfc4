/** Limits on unread counts. */

/**
 * Threads of a room in which a user's unread events are counted: those that were active last. Anybody in a room can begin threads, and each
 * unread one is in every sync of the room.
 */
export const MAX_UNREAD_THREADS = 500
