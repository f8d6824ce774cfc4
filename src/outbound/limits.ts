/** All limits on what others can make us store or read. */

/** Servers whose delegation, ports and paths are cached; the least recently used goes first. */
export const MAX_REMEMBERED_SERVERS = 20_000
export const MAX_WELL_KNOWN_BYTES = 51_200
export const MAX_WELL_KNOWN_REDIRECTS = 5
/** Hosts of one server's service that are tried. */
export const MAX_HOSTS_PER_SERVER = 5
export const MAX_OPENID_ANSWER_BYTES = 5_120
export const MAX_KEY_ANSWER_BYTES = 51_200
/** The keys of a hundred servers. */
export const MAX_NOTARY_ANSWER_BYTES = 2 * 1024 * 1024
export const MAX_HOMESERVER_ANSWER_BYTES = 65_536
/** An error answer to a request whose success might be long. */
export const MAX_REFUSAL_BYTES = 65_536
/** An answer with little in it. */
export const MAX_PEER_ANSWER_BYTES = 1024 * 1024
/** A hundred events of 64 KiB each, or the ids of a large state. */
export const MAX_EVENTS_ANSWER_BYTES = 16 * 1024 * 1024
/** The whole state of a large room with its auth chain. */
export const MAX_JOIN_ANSWER_BYTES = 256 * 1024 * 1024
/** Events of a state and its auth chain in one answer: more than a room that is taken in may have. */
export const MAX_LISTED_EVENTS = 500_000
/** Servers that another names as taking part in a room. */
export const MAX_NAMED_SERVERS = 100_000
/** Events of a state that a server does not give as a whole and that are asked for one by one, so many side by side. */
export const MAX_STATE_ASKED_SINGLY = 5_000
export const STATE_EVENTS_AT_ONCE = 8
