/** Limits on answers that show events, beside those on syncs. */

/** Bytes of events on one page of history, relations or notifications. The client asks for the next page. */
export const MAX_EVENT_PAGE_BYTES = 1024 * 1024
/** Bytes of what is bundled with the events of an answer. */
export const MAX_BUNDLED_BYTES = 4 * 1024 * 1024
/** An answer counts as so many bytes from its request until its size is known, so that a user cannot have any number made at once. */
export const ANSWER_BYTES_RESERVED = 1024 * 1024
/** Of a room whose newest events and state have more bytes than this, nothing is kept for other first syncs. */
export const MAX_FIRST_SECTION_BYTES = 128 * 1024
