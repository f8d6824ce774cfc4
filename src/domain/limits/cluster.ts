/** Limits on the nodes of a cluster. */

/** How long the place of a node is its own after it last said that it runs, by the clock of the database. */
export const NODE_LEASE_MS = 10_000
/** A node counts on its place for this much less, by its own clock. */
export const NODE_LEASE_MARGIN_MS = 2_000
/** How often it says that it runs, and how soon again if the database did not answer. */
export const NODE_RENEWAL_MS = 2_000
export const NODE_RENEWAL_RETRY_MS = 500
/** How often a node that stands by looks whether the place is free. */
export const NODE_LOOK_MS = 100
/** How long a node that takes a place waits for sessions of the process that had it; if they are still there then, it tries again. */
export const SESSIONS_END_MS = 1_000
/**
 * A node that stops gives its place back when all that it has begun is answered, or when no further answer came for so long: what takes longer
 * ends with an error. On a busy machine answers follow each other slowly; but all others wait meanwhile.
 */
export const HAND_OVER_PATIENCE_MS = 2_000
export const HAND_OVER_MOST_MS = 8_000
/**
 * How long a node that stops waits, with requests that wait, until another one serves: as long as a busy machine may take for that, if one
 * stands by, and else only so long that one which is just beginning can be seen.
 */
export const NODE_SUCCESSION_MS = 10_000
export const LONELY_SUCCESSION_MS = 2_000
/** For how long a node that stops says so, while it passes requests on: until every balancer has noticed. */
export const NODE_FAREWELL_MS = 3_000
/** How far apart the clocks of a node and of the database may be. */
export const MAX_CLOCK_DIFFERENCE_MS = 60_000
/** How long a request waits for a node that serves, more than a lease and a start take, and how soon it is tried again: later if many wait, so that all try so often at most. */
export const FORWARD_PATIENCE_MS = 25_000
export const FORWARD_RETRY_MS = 50
export const FORWARD_RETRY_MAX_MS = 1_000
export const FORWARD_RETRIES_PER_MS = 5
/** How long a node keeps a connection to another one that nothing is sent on: less than the listener there does. */
export const IDLE_CONNECTION_MS = 30_000
/** Connections to the listener for nodes that have shown no proof yet. A burst of them from another node is no longer than a backlog. */
export const MAX_UNPROVED_CONNECTIONS = 1_024
/** How much longer the headers of a request get when it is passed on: the proof, and an address. */
export const PASSED_ON_HEADER_BYTES = 2 * 1024
/** Bodies up to this size are kept until their request is answered, so that it can be repeated; and all of them together. */
export const MAX_KEPT_BODY_BYTES = 64 * 1024
export const MAX_KEPT_BODY_BYTES_IN_ALL = 32 * 1024 * 1024
/** How soon the last answers of a node must begin to come after it gave its place back or lost it, and how long they may take. */
export const LAST_ANSWERS_MS = 2_000
export const LONGEST_ANSWERS_MS = 15_000
/** Bytes of rooms and events in the memory of a node that stands by. */
export const STANDBY_MEMORY_BYTES = 64 * 1024 * 1024
/**
 * A larger room is read where it is served: what is in memory of a room is read anew after redactions and other writes that are no new events.
 * Ten thousand members are as much; so many such rooms are remembered.
 */
export const MAX_STANDBY_ROOM_BYTES = 1024 * 1024
export const LARGE_ROOMS_REMEMBERED = 10_000
/** By so many events a room in the memory of such a node moves on; with more, it is read anew. */
export const MAX_EVENTS_MOVED_ON = 32
/** How many events of a room it remembers to have got relations lately, in case they are just being read. No budget counts them. */
export const MAX_STANDBY_TARGETS = 128
/** Longer answers are made where they are served, in pieces. */
export const MAX_STANDBY_ANSWER_BYTES = 1024 * 1024
/** Connections of such a node for scans; small reads have one of their own. */
export const STANDBY_POOL_SIZE = 2
/** How often a node that serves says so to those that follow what wakes syncs, and after which silence they pass everything on. */
export const NEWS_HEARTBEAT_MS = 500
export const NEWS_SILENCE_MS = 2_000
/** How soon a node asks again to follow that could not; later each time where the other one does not know what that is. */
export const NEWS_RETRY_MS = 250
export const NEWS_RETRY_MAX_MS = 10_000
/** After so long without a question, a node that stands by ends its connection to the thread that says whether anything has changed. */
export const VERSION_IDLE_MS = 60_000
/** Bytes of one piece between the two, and of those that wait to be sent: from then on syncs are passed on; at twice as many it ends. */
export const MAX_NEWS_FRAME_BYTES = 4 * 1024 * 1024
export const MAX_NEWS_BACKLOG_BYTES = 16 * 1024 * 1024
/** Rooms and users whose syncs wake in one tick; with more, nobody knows any more who has no news. */
export const MAX_WAKES_PER_TICK = 50_000
/** Nodes that may follow one. */
export const MAX_FOLLOWERS = 64
/** Syncs that one node has the other look at: bytes of those in one piece, and how many at one time. Others are passed on. */
export const ASKED_PIECE_BYTES = 512 * 1024
export const MAX_ASKED_UNDER_WAY = 20_000
/** Requests of clients that one node passes on in batches: those with a longer body, or a longer path and headers, are passed on whole. */
export const MAX_BATCHED_BODY_BYTES = 16 * 1024
export const MAX_BATCHED_HEAD_CHARS = 2_048
/** Bytes of those in one piece, more or less: what is begun at once holds nobody else up. */
export const MAX_BATCH_PIECE_BYTES = 64 * 1024
/** How many of them are under way, and their bytes: at the node that passes them on, and, of all such nodes, at the one that serves. */
export const MAX_BATCHED_UNDER_WAY = 4_000
export const MAX_BATCHED_BYTES_UNDER_WAY = 8 * 1024 * 1024
export const MAX_BATCHED_IN_ALL = 16_000
export const MAX_BATCHED_BYTES_IN_ALL = 32 * 1024 * 1024
/** A sync with a longer query, or a longer answer, is passed on whole. */
export const MAX_ASKED_QUERY_CHARS = 4_096
export const MAX_LOOKED_BYTES = 256 * 1024
/** So is one of a user in more rooms. */
export const MAX_LOOKED_ROOMS = 2_000
/** For so long the other node hears nothing of a device without news; presence and times last seen need more often than once a minute. */
export const QUIET_MS = 20_000
/** Bytes of what is remembered of devices without news. */
export const QUIET_MEMORY_BYTES = 32 * 1024 * 1024
/** Devices that such a node remembers to be in use; the node that serves is told of others once more. */
export const STANDBY_DEVICES_REMEMBERED = 50_000
/** For so many further requests of a caller a node that stands by asks for tokens of a rate limit, and for so long it has them. */
export const MAX_TOKENS_AHEAD = 16
export const TOKENS_AHEAD_MS = 5_000
/** Callers whose tokens it has. */
export const CALLERS_WITH_TOKENS = 50_000
/** After the database did not answer it, it passes everything on, and looks so long after each look whether the database answers again. */
export const STANDBY_LOOK_MS = 1_000
/**
 * How long its last answers may take once it stands by no more: their clients may read slowly, and until then it keeps what it read with.
 * Files are sent for longer.
 */
export const STANDBY_LAST_ANSWERS_MS = 30_000
