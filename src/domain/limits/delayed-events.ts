/** Limits on delayed events. How many a user may have, and for how long, operators say. */

/** Bytes of the content of one. An event cannot be larger. */
export const MAX_DELAYED_CONTENT_BYTES = 64 * 1024
/** Bytes of all contents that wait: of a user, and of all. */
export const MAX_DELAYED_BYTES_PER_USER = 512 * 1024
export const MAX_DELAYED_BYTES = 256 * 1024 * 1024
/** How many wait, of all users. */
export const MAX_DELAYED_EVENTS = 200_000
/** How often the sums over all users are read again. */
export const DELAYED_SUMS_EVERY_MS = 60_000
/** Due events that are sent at a time, and rooms among them that are written to at the same time. */
export const DELAYED_SENT_AT_ONCE = 200
export const DELAYED_ROOMS_AT_ONCE = 8
/** Others do not wait longer for a room, whose policy server may be slow. And so many rooms may be slow at a time. */
export const DELAYED_PATIENCE_MS = 1_000
export const MAX_SLOW_DELAYED_ROOMS = 256
/** A pause after the database has failed, and before an event is tried again that could not be written. */
export const DELAYED_PAUSE_MS = 1_000
export const DELAYED_RETRY_MS = 5_000
/** How long ended ones are shown to their user, and how many of each user. */
export const FINALISED_DELAYED_KEPT_MS = 7 * 24 * 3_600_000
export const MAX_FINALISED_DELAYED_PER_USER = 100
/** Bytes of their contents, of each user: the newest one stays in any case. And how many of all users. */
export const MAX_FINALISED_DELAYED_BYTES_PER_USER = 64 * 1024
export const MAX_FINALISED_DELAYED = 200_000
