/** Limits on what users and other servers can make grow, all in one place. */

/** How much of a body is read before its sender is known. */
export const MAX_ANONYMOUS_BODY_BYTES = 64 * 1024
/**
 * Bytes of request bodies in memory at one time: of all senders, the share that only short bodies may use, and of one address, for which one
 * body always fits that is as long as its endpoint takes.
 */
export const MAX_BODY_BYTES_IN_FLIGHT = 64 * 1024 * 1024
export const MAX_SMALL_BODY_BYTES_IN_FLIGHT = 16 * 1024 * 1024
export const MAX_BODY_BYTES_OF_SENDER = 16 * 1024 * 1024
/** A body counts as short if its declared length is at most this. */
export const SMALL_BODY_BYTES = 16 * 1024
/** How long a body may take to arrive, unless it is a file. */
export const MAX_BODY_SECONDS = 30
/** The average rate at which a body must arrive, after some seconds to begin. */
export const MIN_BODY_BYTES_PER_SECOND = 1024
export const BODY_GRACE_SECONDS = 10

/** Bytes of all caches of rooms and events, and how long an unused entry stays. The least recently used entry goes first. */
export const ROOM_MEMORY_BYTES = 64 * 1024 * 1024
export const MAX_IDLE_IN_MEMORY_MS = 60 * 60 * 1000

/** One more login removes the device that was unused for longest. */
export const MAX_DEVICES_PER_USER = 500
/** Syncs that a device, and a user, may hold open at a time. One more ends the oldest. */
export const MAX_HELD_SYNCS_PER_DEVICE = 4
export const MAX_HELD_SYNCS_PER_USER = 64
/** A larger part of a sync's answer is made while it is sent, in pieces of this size. */
export const MAX_ANSWER_PART_BYTES = 256 * 1024
/** An answer up to this size goes out in one piece, as long as all answers in flight are no larger than eight of these. */
export const MAX_WHOLE_ANSWER_BYTES = 4 * 1024 * 1024
/** Bytes of one room's timeline in a sync. The client pages back for the rest. */
export const MAX_TIMELINE_BYTES = 1024 * 1024
/** Bytes of sync answers that a user has requested and not yet read. At this limit the user's next sync waits. */
export const MAX_ANSWER_BYTES_PER_USER = 32 * 1024 * 1024
/** Milliseconds for which syncs are woken before other work gets a turn. */
export const WAKING_SLICE_MS = 5
/** One more filter removes the oldest. */
export const MAX_FILTERS_PER_USER = 500
/** Account data: the number of entries of one account, the bytes of one entry, and the bytes of all entries. */
export const MAX_ACCOUNT_DATA_PER_USER = 10_000
export const MAX_ACCOUNT_DATA_BYTES = 64 * 1024
export const MAX_ACCOUNT_DATA_BYTES_PER_USER = 10 * 1024 * 1024
export const MAX_PROFILE_BYTES = 65_536
export const MAX_PROFILE_KEY_BYTES = 255
export const MAX_DISPLAYNAME_CHARS = 256
export const MAX_AVATAR_URL_CHARS = 1000
export const MAX_DEVICE_ID_CHARS = 255
export const MAX_DEVICE_NAME_CHARS = 256
export const MAX_PASSWORD_CHARS = 512
/** Logins of a device whose transaction ids are still known. */
export const MAX_SESSIONS_PER_DEVICE = 20
/** Accounts, and places that wrong passwords came from, that are remembered. */
export const MAX_LOGIN_COUNTERS = 50_000
/** The limit of wrong passwords for one account is this many times the limit for one address. */
export const BRAKE_FACTOR = 10
/** How long an address stays known after a session of the account was there. */
export const ADDRESS_KNOWN_MS = 30 * 24 * 60 * 60 * 1000
/** Known addresses of sessions, including ended sessions. */
export const MAX_KNOWN_ADDRESSES = 50_000
/** Email addresses and phone numbers of one account. */
export const MAX_THREEPIDS_PER_USER = 100
/** Remembered bindings at identity servers. They are remembered so that they can be unbound. */
export const MAX_THREEPID_BINDS_PER_USER = 500
/** How long a user may take to finish a user-interactive authentication. */
export const UIA_SESSION_MS = 24 * 60 * 60 * 1000
/** One more ends the oldest. */
export const MAX_UIA_SESSIONS_PER_USER = 50
export const MAX_UIA_SESSIONS_PER_ADDRESS = 2_000
/** Of all people, not finished. If there are more, the oldest tenth ends. */
export const MAX_UIA_SESSIONS = 100_000
/** Attempts at the stages of one session. After these the session ends. */
export const MAX_UIA_ATTEMPTS = 50
/** A longer registration body is not kept with its session: the client has to send it each time. */
export const MAX_UIA_BODY_BYTES = 8 * 1024
/** Characters of a captcha widget's answer. */
export const MAX_CAPTCHA_ANSWER_CHARS = 8_192
/** How long the reuse of a refresh token is noticed. */
export const ENDED_REFRESH_TOKENS_KEPT_MS = 7 * 24 * 60 * 60 * 1000
export const MAX_ALIASES_PER_ROOM = 500
/** Users shown as typing in one room. Further ones are not shown. */
export const MAX_TYPING_PER_ROOM = 100
/** Rooms with remembered typing. The one that was quiet for longest is dropped first. */
export const MAX_ROOMS_WITH_TYPING = 10_000
/** The longest time for which a client may announce typing. */
export const MAX_TYPING_MS = 120_000

/** Presence is shared in rooms with up to this many local members. In larger rooms each change would go to too many users. */
export const MAX_MEMBERS_SHARING_PRESENCE = 50

/** Auth events that are fetched for one batch of events from another server. */
export const MAX_FETCHED_AUTH_EVENTS = 1_000
/** Events of a state and its auth chain that are fetched when history is missing, or when a room is joined. */
export const MAX_CLAIMED_EVENTS = 200_000
/** Missing events that are fetched for one batch, and the number of requests for them. */
export const MAX_FETCHED_EVENTS = 1_000
export const MAX_FETCHES = 25
/** How long other servers are asked for one batch. The room's other events may be waiting for it. */
export const MAX_ASKING_MS = 60_000
/** Missing events in one request, whether we ask or answer. */
export const MAX_MISSING_EVENTS = 50

/** Events in one answer to another server. */
export const MAX_EVENTS_PER_ANSWER = 100
/** Events that are examined for one answer to another server, including those that it does not get. */
export const MAX_EVENTS_WALKED = 1_000
/** Servers that are asked for the history in one gap, one after another. */
export const MAX_HISTORY_SERVERS = 5
/** Events that a piece of history refers to, or that are the room's state there. They are fetched with it. */
export const MAX_FETCHED_WITH_HISTORY = 5_000
/** Event ids that one gap lists as missing. */
export const MAX_GAP_IDS = 20
/** Pieces of history that are fetched for one request of a client. */
export const MAX_FILLS_PER_REQUEST = 10
/** How long one request of a client waits for history of other servers. The fetch goes on after that. */
export const MAX_HISTORY_WAIT_MS = 5_000
/** How long a gap rests after no server had its events. */
export const UNFILLED_GAP_RESTS_MS = 60_000
export const MAX_REMEMBERED_UNFILLED_GAPS = 1_000
/** Servers that are asked for a room's members in one round, one after another. */
export const MAX_RESYNC_SERVERS = 10
/** Partial-state rooms that are resynced at the same time. Each may be large. */
export const MAX_RESYNCS_AT_ONCE = 4
/** Servers that get a partial-state room's events during its resync. The server that answered the join may name any. */
export const MAX_SERVERS_MEANWHILE = 5_000
/** How long a request waits for the resync of a room. */
export const MAX_MEMBERS_WAIT_MS = 15_000
/** Events of a partial-state room that are held until the resync ends, in all and of one server: number, and bytes of JSON. */
export const HELD_CAPS = {
  ofRoom: { count: 10_000, bytes: 64 * 1024 * 1024 },
  ofServer: { count: 2_000, bytes: 16 * 1024 * 1024 },
} as const
/** Receipts that are held meanwhile, of a room and of one server; and characters of the JSON of one. */
export const HELD_RECEIPT_CAPS = { ofRoom: 10_000, ofServer: 2_000 } as const
export const MAX_HELD_RECEIPT_CHARS = 1_000
/** Kicks and bans of one local user that are judged in one round during a partial state, and those that one server sent. */
export const MAX_KICKS_JUDGED = 50
export const MAX_KICKS_JUDGED_OF_A_SERVER = 3
/** Such a kick or ban makes us ask the room's servers again, at most once in this time. */
export const KICK_LOOKED_AT_AFTER_MS = 2_000
/** States that other servers are asked for, for one batch of events with missing history. */
export const MAX_CLAIMED_STATES = 10

/** One more registration with the identity service ends the user's oldest. */
export const MAX_IDENTITY_TOKENS_PER_USER = 100
/** Characters of another homeserver's OpenID token. It becomes part of a URL. */
export const MAX_OPENID_TOKEN_CHARS = 4_096
/** URLs of policies that a user may accept in one request. */
export const MAX_ACCEPTED_URLS_AT_ONCE = 100
/** Accepted URLs that are kept for a user although no policy of this server has them. */
export const MAX_FOREIGN_ACCEPTED_URLS = 100
export const MAX_URL_CHARS = 2_000
/** The period of `identity.lookup.addresses_per_day`. */
export const LOOKUP_QUOTA_MS = 24 * 60 * 60 * 1000
/** Bindings in memory for lookups, 70 MB a million, twice that during a rotation. If there are more, lookups ask the database. */
export const MAX_BINDINGS_IN_MEMORY = 4_000_000
/** Changes of bindings that are kept so that the copy in memory can follow them. */
export const LOOKUP_CHANGES_KEPT = 10_000
/** Characters of the JSON that comes with an invitation of an address. */
export const MAX_INVITE_CHARS = 16_384
/** Redactions that arrived before their target and apply once it arrives. */
export const MAX_EARLY_REDACTIONS = 16
/** Forward extremities that a room's next event may refer to. An event that adds one more is accepted, but not referred to. */
export const MAX_EXTREMITIES = 1_000
/** Invitations that an identity server delivers in one request after a bind. */
export const MAX_INVITES_OF_A_BIND = 500
/** Addresses that are invited while a room is created. Each may cause a mail. */
export const MAX_ADDRESSES_INVITED = 50

/** Keys in one list of a server's answer. Further ones are ignored. */
export const MAX_KEYS_PER_ANSWER = 100
/** Stored keys of one server. The key that expired first is removed first. */
export const MAX_KEYS_PER_SERVER = 200
/** Old keys of this server that are still published. Other Hearth servers read this many. */
export const MAX_FORMER_KEYS = 99
/** Profiles of users of other servers that are remembered for a minute. */
export const MAX_REMEMBERED_PROFILES = 5_000
/** Servers whose keys one request may ask for. */
export const MAX_NOTARY_SERVERS = 100
/** Requests to one server for keys with a later expiry than those it just gave: so many at once, then one in this time. */
export const MAX_INSISTENT_KEY_REQUESTS = 5
export const INSISTENT_KEY_REQUEST_MS = 30_000
/** How long after its expiry the last answer of an unreachable server is still given out. */
export const KEY_ANSWERS_KEPT_MS = 365 * 24 * 3_600_000
/** Servers that are asked for their keys at the same time, not counting slow ones. Further requests wait. */
export const MAX_KEY_REQUESTS_AT_ONCE = 64
/** Servers whose keys are stored, and servers whose whole answer is stored for notary requests. What expired first goes first. */
export const MAX_KEY_OWNERS_KEPT = 100_000
export const MAX_KEY_ANSWERS_KEPT = 20_000
/** Servers whose keys are cached in memory. */
export const MAX_REMEMBERED_KEY_OWNERS = 5_000

/** Bytes of one to-device message, as JSON: as large as an event. */
export const MAX_TO_DEVICE_BYTES = 65_536
/** To-device messages of one call, counting each device that `*` stands for. The call's body may be as long. */
export const MAX_TO_DEVICE_MESSAGES = 10_000
export const MAX_TO_DEVICE_CALL_BYTES = 16 * 1024 * 1024
/**
 * To-device messages that wait for a device. One more removes the oldest of the busiest sender: refusing new ones would let anybody block
 * an inbox.
 */
export const MAX_TO_DEVICE_WAITING = 10_000
/** An inbox is counted each time that this many messages have arrived, so it may exceed its limit by this number. */
export const TO_DEVICE_COUNTED_EVERY = 500
/** To-device messages in one answer of a sync. */
export const MAX_TO_DEVICE_PER_SYNC = 100

/** One more key backup removes the user's oldest. */
export const MAX_KEY_BACKUPS = 20
/** Keys in all backups of a user. */
export const MAX_BACKED_UP_KEYS = 1_000_000
/** What clients encrypted of them, in all versions of a user: about a kilobyte each. */
export const MAX_BACKED_UP_KEY_BYTES = 1024 ** 3
/** Bytes of the encrypted data of one key in a backup, as JSON. */
export const MAX_SESSION_DATA_BYTES = 16_384
/** Bytes of a backup's own description (`auth_data`), as JSON. */
export const MAX_BACKUP_AUTH_BYTES = 65_536
export const MAX_BACKUP_ALGORITHM_CHARS = 255
export const MAX_SESSION_ID_CHARS = 255
/** Bytes of a request that puts many keys into a backup. This is above the usual limit and only for users of this server. */
export const MAX_KEYS_BODY_BYTES = 32 * 1024 * 1024
/** One-time and fallback keys in one request. Other requests wait while they are read and stored. */
export const MAX_KEYS_PER_UPLOAD = 300
export const MAX_ONE_TIME_KEYS_PER_ALGORITHM = 1_000
export const MAX_KEY_ALGORITHMS_PER_DEVICE = 10
/** Users in one key query. */
export const MAX_USERS_PER_KEY_QUERY = 10_000
/** One-time keys that one request may claim. */
export const MAX_KEYS_PER_CLAIM = 20_000
/** Keys with new signatures in one request. */
export const MAX_SIGNED_KEYS_PER_UPLOAD = 500
/**
 * Other servers that a user may reach: in one request, after a rest, and in the long run. `strangers` share no room with the user. A server
 * that is asked takes a millisecond of the event loop, even if it does not answer; one that something is sent to takes a row.
 */
export const FAN_OUT_CAPS = {
  user: {
    neighbours: { asked: 500, sent: 1_000, burst: 4_000, perSecond: 50 },
    strangers: { asked: 10, sent: 10, burst: 100, perSecond: 1 / 30 },
    atOnce: 64,
  },
  guest: {
    neighbours: { asked: 100, sent: 100, burst: 200, perSecond: 5 },
    strangers: { asked: 3, sent: 3, burst: 10, perSecond: 1 / 300 },
    atOnce: 8,
  },
} as const
/** Servers that are asked at the same time on behalf of all users together. */
export const MAX_FAN_OUT_AT_ONCE = 256
/** Remembered pairs of a user and a server that this user reached lately. */
export const MAX_FAN_OUT_REMEMBERED = 50_000
/** Users whose count of reached servers is remembered. */
export const MAX_FAN_OUT_USERS_REMEMBERED = 20_000
/** The longest time for which a key query waits for other servers. */
export const MAX_KEY_QUERY_MS = 20_000
/** How long a claimed one-time key is remembered, in case its device uploads it again. */
export const CLAIMED_KEYS_KEPT_MS = 30 * 24 * 60 * 60 * 1000
/** Servers that are tried, or named, as a way into a room. */
export const MAX_SERVERS_TRIED = 20
/** Signatures on one request of another server. */
export const MAX_REQUEST_SIGNATURES = 5
/** Bytes of a body that is encoded again as canonical JSON, because the signature does not fit the bytes sent: a few times 50 ms. */
export const MAX_REWRITTEN_BODY_BYTES = 4 * 1024 * 1024
/** Bytes of bodies that are encoded again for signatures that turn out to be invalid, in a period. */
export const MAX_VAIN_REWRITES = { ofAddress: 1024 * 1024, inAll: 4 * 1024 * 1024 } as const
export const VAIN_REWRITES_FOR_MS = 10_000
/** What one transaction of another server may hold (server-server API, "Transactions"). */
export const MAX_PDUS_PER_TRANSACTION = 50
export const MAX_EDUS_PER_TRANSACTION = 100
/** Events for one server that are kept in memory while it does not answer. The rest is read again later. */
export const MAX_PDUS_IN_MEMORY = 200
/** Servers that may be unreachable: so many are tried at once, and one in this time. Then the time for servers gone for hours. */
export const MAX_DOUBTFUL_AT_ONCE = 32
export const DOUBTFUL_EVERY_MS = 50
export const GONE_EVERY_MS = 1_000
/** Rooms whose newest events are read together for a server that comes back, and the forward extremities of each. */
export const MAX_ROOM_ENDS_READ = 200
export const MAX_BRANCHES_SENT = 10
/** Servers for which the time of the last log line is remembered. */
export const MAX_LOGGED_DESTINATIONS = 20_000
/** The longest pause that another server may ask us to make. */
export const MAX_RETRY_AFTER_MS = 60 * 60 * 1000
/** EDUs such as typing that wait for one unreachable server. The oldest is dropped first. */
export const MAX_EDUS_WAITING = 500
/** Stored EDUs for other servers that go into one transaction. Each may be as large as an event. */
export const MAX_KEPT_EDUS_PER_TRANSACTION = 50
/** Bytes of the to-device messages in one EDU, as JSON. The message that exceeds this is the last one in the EDU. */
export const TO_DEVICE_EDU_BYTES = 65_536
/** Characters of the event type of a to-device message. */
export const MAX_TO_DEVICE_TYPE_CHARS = 255
/** How long an EDU is stored for a server that does not answer. */
export const EDUS_KEPT_MS = 60 * 24 * 60 * 60 * 1000
/** How long the id of a to-device message is remembered, in case another server sends it again. */
export const MESSAGES_KNOWN_MS = 30 * 24 * 60 * 60 * 1000
/** Events of the stripped state of another server's invitation that are examined, and the bytes of it that are stored, as JSON. */
export const MAX_STRIPPED_STATE = 100
export const MAX_STRIPPED_STATE_BYTES = 16_384
/** Bytes of the content of another server's invitation, as JSON. Each initial sync repeats it. */
export const MAX_INVITATION_BYTES = 16_384
/** Unanswered invitations of a user from other servers: from one of them, and from all. */
export const MAX_OPEN_INVITATIONS = { ofServer: 100, ofUser: 500 } as const
/** Rooms that are not in memory and whose members are read to find the servers that get one user's presence. */
export const MAX_ROOMS_READ_FOR_PRESENCE = 100
/** Rooms that are loaded into memory to find which servers already know a user. */
export const MAX_ROOMS_READ_FOR_STRANGERS = 20
/** Remote users who share no room with ours and whose presence is kept in case they will. */
export const MAX_STRANGERS_PRESENT = 1_000
/** Events that are searched for relations to a page of events, for a filter that names relations. */
export const MAX_EVENTS_SEARCHED_FOR_RELATIONS = 5_000
/** Users in one presence EDU that are examined. */
export const MAX_PRESENCES_PER_EDU = 100
/** Characters of a user's status message. */
export const MAX_STATUS_CHARS = 1_000
/** Receipts in one EDU that are examined. */
export const MAX_RECEIPTS_PER_EDU = 500
/** Rooms of one transaction that are processed in parallel. */
export const MAX_ROOMS_AT_ONCE = 8
/** How long a repeated transaction gets the answer of the first one. */
export const TRANSACTION_KEPT_MS = 24 * 60 * 60 * 1000
/** Bytes that waiting requests of other servers may hold in memory, all together. */
export const MAX_WAITING_PEER_BYTES = 64 * 1024 * 1024
/** Bytes of a body of another server: a transaction of 50 events of 64 KiB, and its EDUs. */
export const MAX_FEDERATION_BODY_BYTES = 16 * 1024 * 1024

/** Application services, each of which is asked about every event. */
export const MAX_APPSERVICES = 1_000
/** Ids of each kind for which the matching namespaces are cached. */
export const MAX_REMEMBERED_NAMESPACES = 50_000
/** Cached callers that are users of application services. */
export const MAX_REMEMBERED_GHOSTS = 20_000
/** Rooms for which the interested application services are cached. */
export const MAX_ROOMS_WITH_INTEREST = 20_000
/** Events for one application service that are kept in memory until it takes them. The rest is read again later. */
export const MAX_APPSERVICE_EVENTS_IN_MEMORY = 5_000
/** The same while the service does not answer. */
export const MAX_EVENTS_IN_MEMORY_FOR_ABSENT_APPSERVICE = 500
/** Rooms whose typing users one application service has yet to learn. */
export const MAX_APPSERVICE_TYPING_ROOMS = 200
/** To-device messages, receipts and device-list changes that wait for one application service, of each kind. */
export const MAX_APPSERVICE_NEWS = 50_000
/** How long these wait for a service that does not answer. */
export const APPSERVICE_NEWS_KEPT_MS = 30 * 24 * 60 * 60 * 1000
/** These are counted each time that up to this many more may have come in. */
export const APPSERVICE_NEWS_COUNTED_EVERY = 2_000
export const MAX_NEWS_PER_APPSERVICE_TRANSACTION = 100
/** Users of one room whose device lists an application service is told about at once. */
export const MAX_DEVICE_LISTS_PER_ROOM = 10_000
export const MAX_EVENTS_PER_APPSERVICE_TRANSACTION = 100
export const MAX_APPSERVICE_TRANSACTION_BYTES = 1_048_576
/** Users, or locations, of other networks in one answer. */
export const MAX_THIRD_PARTY_RESULTS = 1_000

/** Media ids that a user may hold without an upload, and for how long. */
export const MAX_PENDING_UPLOADS_PER_USER = 20
export const PENDING_UPLOAD_MS = 24 * 60 * 60 * 1000
/** Uploads of one user that run at the same time. */
export const MAX_UPLOADS_AT_ONCE = 40
/** The longest time for which a download waits for its upload, and the number of downloads that wait. */
export const MAX_UPLOAD_WAIT_MS = 60_000
export const MAX_WAITING_DOWNLOADS = 1_000
/** Remote media fetched at the same time; those of one server, half of the connections to it; and how many more may wait. */
export const MAX_REMOTE_FETCHES = 100
export const MAX_REMOTE_FETCHES_PER_SERVER = 4
export const MAX_WAITING_FETCHES_PER_SERVER = 200
/** Remote media that could not be fetched. Each failure is remembered for a minute. */
export const MAX_REMEMBERED_MISSES = 5_000
/** Bytes of remote media that one user, or one address without a token, may cause to be fetched: at once, and in the long run. */
export const REMOTE_MEDIA_BURST_BYTES = 500 * 1024 * 1024
export const REMOTE_MEDIA_BYTES_PER_SECOND = 87 * 1024
export const MAX_ALLOWANCES = 20_000
/** Images that get thumbnails: the bytes of the file, and the pixels of all its frames together. */
export const MAX_THUMBNAIL_SOURCE_BYTES = 100 * 1024 * 1024
export const MAX_IMAGE_PIXELS = 32_000_000
/** An animation with more frames gets a still thumbnail. */
export const MAX_IMAGE_FRAMES = 200
/** Thumbnails that could not be made. Each failure is remembered for ten minutes. */
export const MAX_REMEMBERED_FAILURES = 1_000
/** Thumbnails that may wait to be made. */
export const MAX_WAITING_THUMBNAILS = 64
/** Media that are deleted in one transaction. */
export const MAX_MEDIA_SWEPT_AT_ONCE = 500
/** Connections to an external media store: the number of downloads that run. */
export const MAX_STORE_CONNECTIONS = 256
/** URL previews: bytes of a web page that are read, bytes of an image in it, and previews that are made at the same time. */
export const MAX_PAGE_BYTES = 512 * 1024
export const MAX_PREVIEW_IMAGE_BYTES = 8 * 1024 * 1024
export const MAX_PREVIEWS_AT_ONCE = 10
