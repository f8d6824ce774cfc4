/** JSON answers from this size on are compressed for clients that take it. Below, the headers' packet holds the whole answer anyway. */
export const COMPRESSED_FROM_BYTES = 8 * 1024
/** Answers that are compressed at one time: in all, and for one network. Each takes about 300 KiB. Further ones go out as they are. */
export const MAX_COMPRESSIONS = 128
export const MAX_COMPRESSIONS_PER_NETWORK = 16
