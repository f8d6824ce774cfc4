/** Bytes of a tag's name (client-server API, "Room Tagging"). */
export const MAX_TAG_BYTES = 255
/** The newest deleted pieces of account data that are remembered of a user, for clients that have not heard of them. */
export const MAX_DELETED_ACCOUNT_DATA = 1_000
