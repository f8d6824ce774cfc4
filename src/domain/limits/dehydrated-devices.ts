/** Limits on dehydrated devices. Each user has one at most, and its keys and messages have the limits of every device. */

/** Bytes of what a client makes the device of, as JSON: a hundred one-time keys take a tenth of it. */
export const MAX_DEHYDRATED_DATA_BYTES = 64 * 1024
/** Messages in one answer. */
export const MAX_DEHYDRATED_EVENTS = 100
