/** Lists, and rooms asked for by id, in one request. */
export const MAX_SLIDING_LISTS = 100
export const MAX_SLIDING_SUBSCRIPTIONS = 100
/** Clients in use subscribe to every room that they show. */
export const MAX_UNSTABLE_SUBSCRIPTIONS = 1_000
export const MAX_LIST_KEY_CHARS = 255
export const MAX_RANGES = 100
/** Spaces, types or tags in one filter. */
export const MAX_FILTER_VALUES = 100
/** Patterns of state in one wish, and in all different wishes of a request. */
export const MAX_STATE_PATTERNS = 1_000
export const MAX_STATE_PATTERNS_IN_ALL = 5_000
/** Types and state keys of events have at most so many bytes. */
export const MAX_PATTERN_CHARS = 255
/** Of names and types of rooms, by which lists are filtered, so many characters count. */
export const MAX_FACT_CHARS = 255
/** Lists or rooms that an extension names. */
export const MAX_EXTENSION_ROOMS = 1_000
/** Events of one room in an answer. */
export const MAX_SLIDING_TIMELINE = 100
/** Rooms in one answer that the client does not have yet, and others with news. The rest comes with the next one. */
export const MAX_SLIDING_ROOMS = 300
/** Messages to the device in an answer. */
export const MAX_TO_DEVICE_SENT = 100
export const MAX_THREAD_SUBSCRIPTIONS_SENT = 100
/** Connections of one device; the one that was unused for longest goes. Characters of a connection's name. */
export const MAX_CONNECTIONS_PER_DEVICE = 16
export const MAX_CONNECTION_ID_CHARS = 255
/** Different wishes for rooms that are kept for a connection, and their characters. With more of them, rooms are sent anew. */
export const MAX_WISHES_PER_CONNECTION = 200
export const MAX_WISH_CHARS_PER_CONNECTION = 256 * 1024
/** A connection that was unused for so long ends. */
export const CONNECTION_UNUSED_MS = 30 * 86_400_000
/** Receipts that are looked through for those at the events that a room begins with: the newest. */
export const MAX_RECEIPTS_SEARCHED = 1_000
/** How far back the newest event that moves a room up is looked for. */
export const MAX_EVENTS_TO_BUMP = 1_000
/** Bytes of bodies that are kept as they were read, since clients send the same ones again. */
export const MAX_REMEMBERED_BODY_BYTES = 16 * 1024 * 1024
/** Rooms of a user from which on their order is kept in memory between looks; for fewer it is as quick to make it anew. */
export const MIN_ROOMS_OF_KEPT_ORDER = 64
/** Commits to rooms that are remembered in order, so that kept orders are mended instead of made anew. */
export const MAX_JOURNALED_CHANGES = 8_192
/** Fields that a request for profiles names. Users whose profiles an answer holds because it shows them, and changed fields beside. */
export const MAX_PROFILE_FIELDS_ASKED = 100
export const MAX_PROFILES_SENT = 500
export const MAX_PROFILE_CHANGES_SENT = 1_000
/** Removed fields of a user that are remembered, so that clients hear of them. */
export const MAX_REMOVED_PROFILE_FIELDS = 100
