/** Entries of a timeline that one step of a redaction looks at, and events that one write redacts. */
export const REDACTION_SCANNED = 5_000
export const REDACTED_AT_ONCE = 25
/** Events of a room that a redaction looks at, if nothing is said. */
export const REDACTION_LIMIT = 10_000
export const MAX_REDACTION_LIMIT = 1_000_000
/** Reasons that are kept of events that could not be redacted. */
export const MAX_REDACTION_FAILURES = 1_000
/** Users whose redaction may wait. */
export const MAX_OPEN_REDACTIONS = 20_000
/** Rooms that a redaction may name, and characters of its reason. */
export const MAX_REDACTION_ROOMS = 1_000
export const MAX_REDACTION_REASON_CHARS = 1_000
/** The newest events of a shadow-banned user that are shown to them, and the users of whom any are kept. */
export const MAX_GHOSTS_PER_USER = 200
export const MAX_GHOST_BYTES_PER_USER = 512 * 1024
export const MAX_USERS_WITH_GHOSTS = 500
/** Accounts that one act may concern, and those of them that are shown. */
export const MAX_CROWD = 20_000
export const MAX_CROWD_SHOWN = 100
/** Policy lists, and rules of one that are read, old ones that have ended included: the newest. */
export const MAX_POLICY_LISTS = 50
export const MAX_RULES_PER_LIST = 50_000
/** Globs of all lists together, and what they compare for each character of a name: each is compared at every join and invitation. */
export const POLICY_GLOB_BOUNDS = { globs: 2_000, steps: 20_000 } as const
/** Members and bans of lists that are read in one go, new members who wait to be looked at, and bans of an hour. */
export const LIST_BANS_READ_AT_ONCE = 500
export const MAX_FRESH_MEMBERS = 10_000
export const MAX_LIST_BANS_PER_HOUR = 2_000
/** How long changes of lists are gathered before server ACLs follow them, ACLs of an hour, and bytes of one: an event has 65,536. */
export const ACL_SETTLE_MS = 2_000
export const MAX_LIST_ACLS_PER_HOUR = 2_000
export const MAX_LIST_ACL_BYTES = 48_000
/** What a look at a list that is not followed yet may cost, and how many of each kind it shows. */
export const LIST_PREVIEW_MS = 5_000
export const LIST_PREVIEW_SHOWN = 20
/** Servers about which it is remembered whether lists ban them. */
export const MAX_SERVER_VERDICTS = 10_000
/** Users of a server that is not banned any more whose devices are renewed in one go, and servers of which memory knows that they need it. */
export const DEVICE_LISTS_AT_ONCE = 50
export const MAX_SERVERS_KNOWN_MISSED = 10_000
/** The pause after lists were read, before a change makes them be read again. */
export const POLICY_LIST_PAUSE_MS = 1_000
/** Questions to the antispam service at the same time (others wait), the bytes of an answer, and how long it is not asked when it is away. */
export const MAX_ANTISPAM_AT_ONCE = 64
export const MAX_ANTISPAM_BYTES = 16_384
export const ANTISPAM_REST_MS = 5_000
