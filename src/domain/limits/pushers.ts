/** Limits on pushers and on what is sent to push gateways. */

/** Pushers of one user. One more is refused. */
export const MAX_PUSHERS_PER_USER = 100
/** The lengths that the specification gives. */
export const MAX_PUSHKEY_BYTES = 512
export const MAX_APP_ID_CHARS = 64
/** Characters of a pusher's names, of its profile tag and of its language. */
export const MAX_PUSHER_NAME_CHARS = 256
export const MAX_PROFILE_TAG_CHARS = 64
export const MAX_PUSHER_LANG_CHARS = 64
/** Bytes of a pusher's data as JSON. Every request to its gateway repeats it. */
export const MAX_PUSHER_DATA_BYTES = 8 * 1024

/** Requests to push gateways at a time: in all, to one, and to one that has not answered yet. One that did not answer gets one. */
export const MAX_PUSHES_AT_ONCE = 192
export const MAX_PUSHES_PER_GATEWAY = 64
export const MAX_PUSHES_TO_UNPROVEN_GATEWAY = 2
/** Requests at a time to all gateways that have not answered yet, so that slow ones leave room for the others. */
export const MAX_PUSHES_TO_UNPROVEN_GATEWAYS = 24
/** A gateway whose answer takes longer counts as one that has not answered. */
export const SLOW_PUSH_MS = 2_000
/** Gateways without work that are remembered as answering. */
export const MAX_KNOWN_GATEWAYS = 1_000
/** Notifications of one pusher that wait in memory, and of all pushers. The others are read from the events when it is their turn. */
export const MAX_NOTICES_IN_MEMORY = 64
export const MAX_ALL_NOTICES_IN_MEMORY = 200_000
/** A pusher that reads what it missed may always keep this many. */
export const MIN_NOTICES_IN_MEMORY = 8
/** Bytes of events that are kept ready to be sent to many. */
export const MAX_NOTIFIED_EVENT_BYTES = 8 * 1024 * 1024
/** Events that are examined at a time for a pusher that lags behind, and at least so many of each room. */
export const MISSED_EVENTS_PER_PAGE = 500
export const MIN_MISSED_EVENTS_PER_ROOM = 16
/** Pushers that read what they missed at a time. */
export const MAX_MISSED_READS_AT_ONCE = 4
/** Events that wait to be evaluated. When more wait, they are read from the stream. */
export const MAX_UNEVALUATED_EVENTS = 2_000
/**
 * The pace of one pusher: so many notifications at once, and then one each time this has passed. Services that reach phones take about four
 * a second for one device. In one busy room, a message that comes while the pace is used up is told of at the next turn.
 */
export const PUSH_PACE = { burst: 10, everyMs: 200 }
/** The pace while something waits that the user must not miss, such as a mention. */
export const URGENT_PUSH_PACE = { burst: 50, everyMs: 100 }
/** What has waited longer than this waited for its gateway: it is sent one by one, at the pace, for so long after the gateway is back. */
export const OUTAGE_MS = 10_000
export const CATCHING_UP_MS = 60_000
/** How long one notification is tried. */
export const PUSH_GIVEN_UP_AFTER_MS = 24 * 60 * 60 * 1000
/** The shortest time between two requests of one pusher that bring counts alone. */
export const COUNTS_EVERY_MS = 1_000
/** Rooms for which the members with pushers are remembered, and users whose counts are. */
export const MAX_ROOMS_WITH_PUSHERS = 20_000
export const MAX_BADGES = 50_000
