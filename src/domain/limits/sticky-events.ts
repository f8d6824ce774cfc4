/** Sticky events of one user in a room, of a room, and bytes of a room's: the oldest of the user, or of the room, is sticky no more. */
export const MAX_STICKY_PER_SENDER = 100
export const MAX_STICKY_PER_ROOM = 1_000
export const MAX_STICKY_BYTES_PER_ROOM = 1024 * 1024
/** Sticky events of all rooms. One more is an event like any other. */
export const MAX_STICKY_EVENTS = 100_000
/** The most in one answer of sliding sync; the rest comes with the next one. */
export const MAX_STICKY_SENT = 100
/** How long after its first user has come into a room a server is sent what is sticky there: it may be busy with the join. */
export const STICKY_SENT_AFTER_MS = [2_000, 60_000]
/** Sticky events of a room that another server is sent again: the newest. */
export const MAX_STICKY_SENT_AGAIN = 50
/** Soft-failed events that are judged again while they are sticky: in one room, and in all. One more drops the oldest. */
export const MAX_APPEALS_PER_ROOM = 100
export const MAX_APPEALS = 10_000
/** How long after a change of a room's state its events are judged again: changes often come together. */
export const APPEAL_AFTER_MS = 200
