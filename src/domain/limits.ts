/** Caps on what users can make grow, in one place. */

/** What is read of the body of a request whose sender is not known. */
export const MAX_ANONYMOUS_BODY_BYTES = 64 * 1024
/** The bodies of requests that are in memory at one time: of everybody, the part of it for short ones alone, and of one address. */
export const MAX_BODY_BYTES_IN_FLIGHT = 64 * 1024 * 1024
export const MAX_SMALL_BODY_BYTES_IN_FLIGHT = 16 * 1024 * 1024
export const MAX_BODY_BYTES_OF_SENDER = 32 * 1024 * 1024
/** A body that says it is no longer is a short one. */
export const SMALL_BODY_BYTES = 16 * 1024
/** A body that is no file has arrived after so long. */
export const MAX_BODY_SECONDS = 30
/** What has to arrive of any body on the average, once it had so many seconds to begin. */
export const MIN_BODY_BYTES_PER_SECOND = 1024
export const BODY_GRACE_SECONDS = 10

/** True bytes for all that is cached about rooms and events; what was not used for longest goes first, and what nobody used for so long. */
export const ROOM_MEMORY_BYTES = 64 * 1024 * 1024
export const MAX_IDLE_IN_MEMORY_MS = 60 * 60 * 1000

/** A login beyond these removes the device that was not used for longest. */
export const MAX_DEVICES_PER_USER = 500
/** Syncs that a device, and a user, holds open at a time; one more ends the oldest. */
export const MAX_HELD_SYNCS_PER_DEVICE = 4
export const MAX_HELD_SYNCS_PER_USER = 64
/** A part of a sync's answer that is larger is made while it is sent, in pieces of this size. */
export const MAX_ANSWER_PART_BYTES = 256 * 1024
/** An answer up to this size goes out in one piece, while all that are on their way come to no more than eight such. */
export const MAX_WHOLE_ANSWER_BYTES = 4 * 1024 * 1024
/** A room's timeline in a sync ends where its events come to so much; the rest is had by turning back the pages. */
export const MAX_TIMELINE_BYTES = 1024 * 1024
/** Bytes of syncs' answers that a user has not taken off us yet; who asks for more waits. */
export const MAX_ANSWER_BYTES_PER_USER = 32 * 1024 * 1024
/** So long syncs are woken before others get their turn. Milliseconds. */
export const WAKING_SLICE_MS = 5
/** A filter beyond these removes the oldest. */
export const MAX_FILTERS_PER_USER = 500
/** Pieces of data that an account keeps, of what size each, and what all of them come to. */
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
/** Password hashes that may wait for a worker: whoever is told to come back costs more than whoever waits. */
export const MAX_WAITING_HASHES = 256
/** Logins of a device of which it is remembered what they sent. */
export const MAX_SESSIONS_PER_DEVICE = 20
/** Accounts, and places from which passwords were wrong, that are remembered. */
export const MAX_LOGIN_COUNTERS = 50_000
/** So many times what one address may get wrong all together may, of one account. */
export const BRAKE_FACTOR = 10
/** For so long an address is known at which a session of an account was. */
export const ADDRESS_KNOWN_MS = 30 * 24 * 60 * 60 * 1000
/** Addresses at which sessions were, those of sessions that have ended among them. */
export const MAX_KNOWN_ADDRESSES = 50_000
/** Addresses on one account. */
export const MAX_THREEPIDS_PER_USER = 100
/** Binds with identity servers that are remembered, so that they can be ended. */
export const MAX_THREEPID_BINDS_PER_USER = 500
/** Time to finish a user-interactive authentication. */
export const UIA_SESSION_MS = 24 * 60 * 60 * 1000
/** One more ends the oldest. */
export const MAX_UIA_SESSIONS_PER_USER = 50
export const MAX_UIA_SESSIONS_PER_ADDRESS = 2_000
/** Tries at the stages of one session; after them it is ended. */
export const MAX_UIA_ATTEMPTS = 50
/** A longer body of a registration is not kept with its session: it has to be sent each time. */
export const MAX_UIA_BODY_BYTES = 8 * 1024
/** An answer of a captcha's widget. */
export const MAX_CAPTCHA_ANSWER_CHARS = 8_192
/** For how long it is noticed that a refresh token is used again. */
export const ENDED_REFRESH_TOKENS_KEPT_MS = 7 * 24 * 60 * 60 * 1000
/** Time to sign in at another service and come back, and then again to choose a user name. */
export const SSO_FLOW_MS = 15 * 60 * 1000
/** What is kept of an answer of such a service. */
export const MAX_SSO_SUBJECT_CHARS = 1_000
export const MAX_ALIASES_PER_ROOM = 500
/** Users shown as typing in one room; others are not. */
export const MAX_TYPING_PER_ROOM = 100
/** Rooms whose typing is remembered; the one that was quiet longest is dropped first. */
export const MAX_ROOMS_WITH_TYPING = 10_000
/** Longest time for which a client may say that its user types. */
export const MAX_TYPING_MS = 120_000

/** Presence is shared in rooms of up to this many local members: in larger ones everybody's coming and going would go to everybody. */
export const MAX_MEMBERS_SHARING_PRESENCE = 50

/** Auth events that are fetched for the sake of one batch of events from another server. */
export const MAX_FETCHED_AUTH_EVENTS = 1_000
/** Events of a state and its auth chain that are fetched when history is missing, or when a room is joined. */
export const MAX_CLAIMED_EVENTS = 200_000
/** Missing events that are fetched for the sake of one batch, in so many requests at most. */
export const MAX_FETCHED_EVENTS = 1_000
export const MAX_FETCHES = 25
/** After so long no more is asked for the sake of one batch: the room's other events wait for some of it. */
export const MAX_ASKING_MS = 60_000
/** Missing events asked for, and answered, in one request. */
export const MAX_MISSING_EVENTS = 50

/** Events in one answer to another server. */
export const MAX_EVENTS_PER_ANSWER = 100
/** Events that are looked at for one answer to another server, the ones that it is not told of among them. */
export const MAX_EVENTS_WALKED = 1_000
/** Rooms of a space that are looked at, for one page of what it holds or all its pages. */
export const MAX_ROOMS_WALKED = 1_000
export const MAX_SPACE_PAGE = 50
/** How deep spaces within spaces are followed. */
export const MAX_SPACE_DEPTH = 10
/** Rooms that one space names and that are looked at. */
export const MAX_SPACE_CHILDREN = 500
/** Of those the ones that other servers are told of without asking. */
export const MAX_SPACE_CHILDREN_TOLD = 100
/** Servers that are asked for one room of a space. */
export const MAX_SPACE_SERVERS_TRIED = 3
/** How long one page waits for rooms of other servers; what comes later is on the next. */
export const MAX_SPACE_WAIT_MS = 10_000
/** Characters that are remembered of a space of another server, for some minutes. */
export const MAX_SPACE_ANSWER_CHARS = 262_144
/** Servers that are asked for the history in one gap, one after another. */
export const MAX_HISTORY_SERVERS = 5
/** Events that a piece of history cites, or finds as the room's state, and that are fetched with it. */
export const MAX_FETCHED_WITH_HISTORY = 5_000
/** What is missing in one gap is asked for by so many ids. */
export const MAX_GAP_IDS = 20
/** Pieces of history that are fetched for one request of a client. */
export const MAX_FILLS_PER_REQUEST = 10
/** How long one request of a client waits for history of other servers; the fetching goes on. */
export const MAX_HISTORY_WAIT_MS = 5_000
/** A gap whose events no server had is let be for so long. */
export const UNFILLED_GAP_RESTS_MS = 60_000
export const MAX_REMEMBERED_UNFILLED_GAPS = 1_000
/** Servers that are asked for the members of a room in one round, one after another. */
export const MAX_RESYNC_SERVERS = 10
/** Rooms whose members are fetched at the same time: each may be large. */
export const MAX_RESYNCS_AT_ONCE = 4
/** Servers that are told what passes in such a room by the word of one that may name anybody. */
export const MAX_SERVERS_MEANWHILE = 5_000
/** How long a request waits for the members of a room that are being fetched. */
export const MAX_MEMBERS_WAIT_MS = 15_000
/** What waits until the members of its room are known, and what of that one server sent: events, and bytes of their JSON. */
export const HELD_CAPS = {
  ofRoom: { count: 10_000, bytes: 64 * 1024 * 1024 },
  ofServer: { count: 2_000, bytes: 16 * 1024 * 1024 },
} as const
/** What users of other servers have read there, and those of one server; and characters of the JSON of one. */
export const HELD_RECEIPT_CAPS = { ofRoom: 10_000, ofServer: 2_000 } as const
export const MAX_HELD_RECEIPT_CHARS = 1_000
/** Kicks and bans of one user of ours that are judged in one round while they wait so, and those of one server among them. */
export const MAX_KICKS_JUDGED = 50
export const MAX_KICKS_JUDGED_OF_A_SERVER = 3
/** Who sends one has the servers of the room asked again, at the soonest so long after they were. */
export const KICK_LOOKED_AT_AFTER_MS = 2_000
/** States that other servers are asked for, for the sake of one batch of events with missing history. */
export const MAX_CLAIMED_STATES = 10

/** A registration with the identity service beyond these ends the user's oldest one. */
export const MAX_IDENTITY_TOKENS_PER_USER = 100
/** Tokens of other homeservers become part of a URL. */
export const MAX_OPENID_TOKEN_CHARS = 4_096
/** URLs that a user may send as accepted in one request. */
export const MAX_ACCEPTED_URLS_AT_ONCE = 100
/** URLs that are kept for a user though no policy of this server has them. */
export const MAX_FOREIGN_ACCEPTED_URLS = 100
export const MAX_URL_CHARS = 2_000
/** The time for which `identity.lookup.addresses_per_day` counts. */
export const LOOKUP_QUOTA_MS = 24 * 60 * 60 * 1000
/** Bindings that lookups keep in memory, at 70 MB a million, twice that during a rotation; where there are more, they ask the database. */
export const MAX_BINDINGS_IN_MEMORY = 4_000_000
/** Changes of bindings that are kept for memory to follow. */
export const LOOKUP_CHANGES_KEPT = 10_000
/** What comes with an invitation to an address, as JSON. */
export const MAX_INVITE_CHARS = 16_384
/** Redactions that came before their target and are shown once it comes. */
export const MAX_EARLY_REDACTIONS = 16
/** Branches of a room that its next events may build on. What opens one more is taken in, and is left to others to build on. */
export const MAX_EXTREMITIES = 1_000
/** Invitations that an identity server delivers in one request. */
export const MAX_INVITES_OF_A_BIND = 500
/** Addresses that are invited while a room is made: each may become a mail. */
export const MAX_ADDRESSES_INVITED = 50

/** Keys in one list of a server's answer; what comes after them is passed over. */
export const MAX_KEYS_PER_ANSWER = 100
/** Keys that are kept of a server; those that went out of use first are forgotten first. */
export const MAX_KEYS_PER_SERVER = 200
/** Keys of this server that went out of use and are still published: so many are read by others of its kind. */
export const MAX_FORMER_KEYS = 99
/** Profiles of users of other servers that are remembered for a minute. */
export const MAX_REMEMBERED_PROFILES = 5_000
/** Servers whose keys one request may ask for. */
export const MAX_NOTARY_SERVERS = 100
/** Requests to one server for keys that last longer than those it told a moment ago: so many at once, and one each so long. */
export const MAX_INSISTENT_KEY_REQUESTS = 5
export const INSISTENT_KEY_REQUEST_MS = 30_000
/** What a server that is gone said of its keys is told for so long after it ran out. */
export const KEY_ANSWERS_KEPT_MS = 365 * 24 * 3_600_000
/** Servers that are asked for their keys at the same time, those left out that let us wait; the others wait. */
export const MAX_KEY_REQUESTS_AT_ONCE = 64
/** Servers whose keys are kept, and those whose whole answer is kept to be passed on: what ran out first is forgotten first. */
export const MAX_KEY_OWNERS_KEPT = 100_000
export const MAX_KEY_ANSWERS_KEPT = 20_000
/** Servers whose keys are kept in memory. */
export const MAX_REMEMBERED_KEY_OWNERS = 5_000

/** One message from device to device, as JSON: as large as an event. */
export const MAX_TO_DEVICE_BYTES = 65_536
/** What one call may come to, once `*` stands for all devices of a user; its body may be as long. */
export const MAX_TO_DEVICE_MESSAGES = 10_000
export const MAX_TO_DEVICE_CALL_BYTES = 16 * 1024 * 1024
/** Messages that wait for a device. Beyond these the oldest go, of the busiest sender first: refusing new ones would let anybody close an inbox. */
export const MAX_TO_DEVICE_WAITING = 10_000
/** An inbox is counted each time that so many messages have come in, so it may grow beyond its cap by as many. */
export const TO_DEVICE_COUNTED_EVERY = 500
/** Messages to a device in one answer to its sync. */
export const MAX_TO_DEVICE_PER_SYNC = 100

/** A backup of keys beyond these removes the user's oldest. */
export const MAX_KEY_BACKUPS = 20
/** Keys in all backups of a user. */
export const MAX_BACKED_UP_KEYS = 1_000_000
/** What is encrypted in one key of a backup, as JSON. */
export const MAX_SESSION_DATA_BYTES = 16_384
/** What a backup says of itself, as JSON. */
export const MAX_BACKUP_AUTH_BYTES = 65_536
export const MAX_BACKUP_ALGORITHM_CHARS = 255
export const MAX_SESSION_ID_CHARS = 255
/** The body of a call that puts many keys into a backup at once: above the usual cap, and only from users of this server. */
export const MAX_KEYS_BODY_BYTES = 32 * 1024 * 1024
/** One-time and fallback keys in one request: they are read and stored while others wait. */
export const MAX_KEYS_PER_UPLOAD = 300
export const MAX_ONE_TIME_KEYS_PER_ALGORITHM = 1_000
export const MAX_KEY_ALGORITHMS_PER_DEVICE = 10
/** Users whose keys are asked for in one request. */
export const MAX_USERS_PER_KEY_QUERY = 10_000
/** One-time keys that are claimed in one request. */
export const MAX_KEYS_PER_CLAIM = 20_000
/** Keys with new signatures in one request. */
export const MAX_SIGNED_KEYS_PER_UPLOAD = 500
/**
 * Other servers that a user's requests about keys and to devices reach: in one request, at once after a rest, and in the long run; those
 * that share a room with the user, and strangers, who are asked before they are invited, say.
 */
export const FAN_OUT_CAPS = {
  user: {
    neighbours: { perRequest: 1_000, burst: 4_000, perSecond: 50 },
    strangers: { perRequest: 10, burst: 100, perSecond: 1 / 30 },
    atOnce: 64,
  },
  guest: {
    neighbours: { perRequest: 100, burst: 200, perSecond: 5 },
    strangers: { perRequest: 3, burst: 10, perSecond: 1 / 300 },
    atOnce: 8,
  },
} as const
/** Servers that are asked at the same time on behalf of users, all users together. */
export const MAX_FAN_OUT_AT_ONCE = 256
/** Pairs of a user and a server that this user has reached lately. */
export const MAX_FAN_OUT_REMEMBERED = 50_000
/** Users of whom it is remembered how many servers they have reached. */
export const MAX_FAN_OUT_USERS_REMEMBERED = 20_000
/** Longest time for which other servers are waited for on behalf of a query of keys. */
export const MAX_KEY_QUERY_MS = 20_000
/** A claimed one-time key is known for so long, in case that its device uploads it once more. */
export const CLAIMED_KEYS_KEPT_MS = 30 * 24 * 60 * 60 * 1000
/** Servers that are tried, or named, as ways into a room. */
export const MAX_SERVERS_TRIED = 20
/** Signatures of one request of another server. */
export const MAX_REQUEST_SIGNATURES = 5
/** A body that is not the canonical JSON that was signed is written anew up to this length: a few times 50 ms. */
export const MAX_REWRITTEN_BODY_BYTES = 4 * 1024 * 1024
/** Bytes of bodies that are written anew for signatures that turn out to be made up, in so long. */
export const MAX_VAIN_REWRITES = { ofAddress: 1024 * 1024, inAll: 4 * 1024 * 1024 } as const
export const VAIN_REWRITES_FOR_MS = 10_000
/** What one transaction of another server may hold (server-server API, "Transactions"). */
export const MAX_PDUS_PER_TRANSACTION = 50
export const MAX_EDUS_PER_TRANSACTION = 100
/** Events for one server that are kept in memory while it does not take them; the rest is read again. */
export const MAX_PDUS_IN_MEMORY = 200
/** Servers that may not be there: so many are tried at once, and one in so long; and the same of those that have been away for hours. */
export const MAX_DOUBTFUL_AT_ONCE = 32
export const DOUBTFUL_EVERY_MS = 50
export const GONE_EVERY_MS = 1_000
/** Rooms of which the newest events are read at once for a server that comes back, and branches of each. */
export const MAX_ROOM_ENDS_READ = 200
export const MAX_BRANCHES_TOLD = 10
/** Servers of which it is remembered when the log last spoke of them. */
export const MAX_LOGGED_DESTINATIONS = 20_000
/** How long another server may ask us to leave it alone. */
export const MAX_TOLD_PAUSE_MS = 60 * 60 * 1000
/** What passes, such as typing, for one server that does not take it: the oldest goes first. */
export const MAX_EDUS_WAITING = 500
/** What is kept for other servers until they take it, as far as one transaction takes it along: EDUs of the size of an event. */
export const MAX_KEPT_EDUS_PER_TRANSACTION = 50
/** Messages to devices of one EDU, as JSON: the one that goes beyond is its last. */
export const TO_DEVICE_EDU_BYTES = 65_536
/** The event type of a message to devices. */
export const MAX_TO_DEVICE_TYPE_CHARS = 255
/** What a server does not take for so long is forgotten. */
export const EDUS_KEPT_MS = 60 * 24 * 60 * 60 * 1000
/** For so long a message to devices that another server sends again is known. */
export const MESSAGES_KNOWN_MS = 30 * 24 * 60 * 60 * 1000
/** What is looked at of what another server shows of a room with an invitation, and what is kept of it, as JSON. */
export const MAX_STRIPPED_STATE = 100
export const MAX_STRIPPED_STATE_BYTES = 16_384
/** The content of an invitation that another server sends, as JSON: each initial sync repeats it. */
export const MAX_INVITATION_BYTES = 16_384
/** Invitations by other servers that a user has not answered: by one of them, and by all. */
export const MAX_OPEN_INVITATIONS = { ofServer: 100, ofUser: 500 } as const
/** Rooms that are read into memory to tell their servers how one user is. */
export const MAX_ROOMS_READ_FOR_PRESENCE = 20
/** Users of other servers who share no room with ours, of whom it is kept how they are until they do. */
export const MAX_STRANGERS_PRESENT = 1_000
/** Events that are searched for relations to a page of others, for a filter that names relations. */
export const MAX_EVENTS_SEARCHED_FOR_RELATIONS = 5_000
/** Users of one EDU about presence that are looked at. */
export const MAX_PRESENCES_PER_EDU = 100
/** What a user says of how they are. */
export const MAX_STATUS_CHARS = 1_000
/** Receipts of one EDU that are looked at. */
export const MAX_RECEIPTS_PER_EDU = 500
/** Rooms of one transaction that are worked on side by side. */
export const MAX_ROOMS_AT_ONCE = 8
/** How long a transaction that is sent again gets the answer of the first time. */
export const TRANSACTION_KEPT_MS = 24 * 60 * 60 * 1000
/** What requests of other servers that wait for their turn may hold in memory, all together. */
export const MAX_WAITING_PEER_BYTES = 64 * 1024 * 1024
/** Bodies of requests of other servers: a transaction of 50 events of 64 KiB, and its EDUs. */
export const MAX_FEDERATION_BODY_BYTES = 16 * 1024 * 1024

/** Application services, each of which is asked about every event. */
export const MAX_APPSERVICES = 1_000
/** Ids of each kind of which it is remembered whose namespaces they lie in. */
export const MAX_REMEMBERED_NAMESPACES = 50_000
/** Users of application services that are remembered as callers. */
export const MAX_REMEMBERED_GHOSTS = 20_000
/** Rooms of which it is remembered what application services they concern. */
export const MAX_ROOMS_WITH_INTEREST = 20_000
/** Events for one application service that are kept in memory until it takes them; the rest is read again. */
export const MAX_APPSERVICE_EVENTS_IN_MEMORY = 5_000
/** The same while it takes nothing. */
export const MAX_EVENTS_IN_MEMORY_FOR_ABSENT_APPSERVICE = 500
/** Rooms of which one application service is still to be told who types. */
export const MAX_APPSERVICE_TYPING_ROOMS = 200
/** What waits for one application service beside events, of each kind: messages to devices, receipts, changed devices. */
export const MAX_APPSERVICE_NEWS = 50_000
/** How long a service may be away and still get them. */
export const APPSERVICE_NEWS_KEPT_MS = 30 * 24 * 60 * 60 * 1000
/** An application service's news are counted when this many more may have come in. */
export const APPSERVICE_NEWS_COUNTED_EVERY = 2_000
export const MAX_NEWS_PER_APPSERVICE_TRANSACTION = 100
/** Users of one room of whom an application service is told at once that their devices are to be asked for, or forgotten. */
export const MAX_DEVICE_LISTS_PER_ROOM = 10_000
export const MAX_EVENTS_PER_APPSERVICE_TRANSACTION = 100
export const MAX_APPSERVICE_TRANSACTION_BYTES = 1_048_576
/** Users, or places, of other networks in one answer. */
export const MAX_THIRD_PARTY_RESULTS = 1_000

/** Names for uploads that a user may hold without using them, and for how long. */
export const MAX_PENDING_UPLOADS_PER_USER = 20
export const PENDING_UPLOAD_MS = 24 * 60 * 60 * 1000
/** Uploads of one user that come in at the same time. */
export const MAX_UPLOADS_AT_ONCE = 40
/** Longest time for which a download waits for its upload, and downloads that wait. */
export const MAX_UPLOAD_WAIT_MS = 60_000
export const MAX_WAITING_DOWNLOADS = 1_000
/** Files of other servers that are on their way here; of one server, half of the connections to it; and how many more may wait. */
export const MAX_REMOTE_FETCHES = 100
export const MAX_REMOTE_FETCHES_PER_SERVER = 4
export const MAX_WAITING_FETCHES_PER_SERVER = 200
/** Files that could not be had, remembered for a minute. */
export const MAX_REMEMBERED_MISSES = 5_000
/** What one user, or one address without a token, may bring here of other servers' files: at once, and in the long run. */
export const REMOTE_MEDIA_BURST_BYTES = 500 * 1024 * 1024
export const REMOTE_MEDIA_BYTES_PER_SECOND = 87 * 1024
export const MAX_ALLOWANCES = 20_000
/** Images of which thumbnails are made: their file, and what decoding them may come to, all frames together. */
export const MAX_THUMBNAIL_SOURCE_BYTES = 100 * 1024 * 1024
export const MAX_IMAGE_PIXELS = 32_000_000
/** An animation of more stands still. */
export const MAX_IMAGE_FRAMES = 200
/** Thumbnails that could not be made, remembered for ten minutes. */
export const MAX_REMEMBERED_FAILURES = 1_000
/** Thumbnails that may wait to be made. */
export const MAX_WAITING_THUMBNAILS = 64
/** Media that is removed in one transaction. */
export const MAX_MEDIA_SWEPT_AT_ONCE = 500
/** Connections to a store of media elsewhere: downloads that are under way. */
export const MAX_STORE_CONNECTIONS = 256
/** So much of a web page is read for its preview; a picture in it may be so large; so many pages are looked at at the same time. */
export const MAX_PAGE_BYTES = 512 * 1024
export const MAX_PREVIEW_IMAGE_BYTES = 8 * 1024 * 1024
export const MAX_PREVIEWS_AT_ONCE = 10
