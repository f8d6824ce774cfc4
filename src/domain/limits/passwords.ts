/**
 * Password hashes that may wait for a thread: as many as are done within a time, because clients give up after a while and their hashes are
 * made all the same; at least the fewest, and never more than the most.
 */
export const MAX_HASH_WAIT_MS = 10_000
export const FEWEST_WAITING_HASHES = 8
export const MAX_WAITING_HASHES = 256
