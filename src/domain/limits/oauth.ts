/** Clients that nobody has used yet: of one network, and of all. One more of all removes the oldest, if it has waited long enough. */
export const MAX_UNUSED_CLIENTS_PER_NETWORK = 50
export const MAX_UNUSED_CLIENTS = 10_000
/** How long a client is safe from that: a person may be signing in with it. */
export const NEW_CLIENT_SAFE_MS = 30 * 60 * 1000
/** All clients that are kept. One more removes those that are without sessions, the longest unused first, so many at once. */
export const MAX_CLIENTS = 50_000
export const CLIENTS_REMOVED_AT_ONCE = 500
/** The longest registration of a client. */
export const MAX_CLIENT_METADATA_BYTES = 16 * 1024
/** How long a client may wait for its first sign-in, and be without sessions after its last. */
export const UNUSED_CLIENT_KEPT_MS = 24 * 60 * 60 * 1000
export const IDLE_CLIENT_KEPT_MS = 180 * 24 * 60 * 60 * 1000

/** Steps of sign-ins that are done at one time, and that may wait; beyond that, they are told to come again. */
export const STEPS_AT_ONCE = 12
/** Sessions that are made at one time: each takes a connection for transactions, of which there are few. */
export const SESSIONS_AT_ONCE = 3
export const MAX_STEPS_WAITING = 500
export const STEP_RETRY_MS = 3_000

/** How long a person may take between the client's request and their consent. */
export const INTERACTION_SECONDS = 30 * 60
/** Authorisations under way, and device codes, of all people. Beyond that, the oldest end. */
export const MAX_INTERACTIONS = 20_000
export const MAX_DEVICE_CODES = 10_000
/** The longest request for an authorisation that is kept. */
export const MAX_AUTHORIZATION_BYTES = 16 * 1024
/** How long a code can be exchanged for tokens, and a grant waits for that. */
export const AUTHORIZATION_CODE_SECONDS = 60
export const GRANT_SECONDS = 60 * 60
/** How long a device may wait for a person to enter its code, and how often it may ask. */
export const DEVICE_CODE_SECONDS = 10 * 60
export const DEVICE_POLL_SECONDS = 5

/** Browsers in which one person is signed in to the account page. */
export const MAX_WEB_SESSIONS_PER_USER = 20
/** They are signed out when they are unused for so long, and in any case after so long. */
export const WEB_SESSION_IDLE_MS = 60 * 60 * 1000
export const WEB_SESSION_MS = 12 * 60 * 60 * 1000
/** How long after they proved who they are people may do what cannot be undone. */
export const RECENT_PROOF_MS = 10 * 60 * 1000
/** How long after their approval people's apps may replace their cross-signing keys, once. */
export const CROSS_SIGNING_APPROVAL_MS = 10 * 60 * 1000

/** The largest picture that the account page takes. Apps may upload larger ones. */
export const MAX_PICTURE_BYTES = 10 * 1024 * 1024

/** Archives of people's data: how many there are, made or asked for, and how many are made at one time. */
export const MAX_ARCHIVES = 1_000
export const ARCHIVES_AT_ONCE = 2
/** How long the file of an archive is kept, and how often a person may ask for one. */
export const ARCHIVE_KEPT_MS = 48 * 60 * 60 * 1000
export const ARCHIVE_EVERY_MS = 24 * 60 * 60 * 1000
/** Bytes of all files together. Nothing more is begun above that, nor when the disk is almost full. */
export const MAX_ARCHIVE_BYTES = 20 * 1024 * 1024 * 1024
/** An archive that could not be made is tried again after so long, and so often. */
export const ARCHIVE_RETRY_MS = 60_000
export const MAX_ARCHIVE_FAILURES = 20
/** How far an archive is, is recorded after so many bytes, or so long. */
export const ARCHIVE_RECORDED_BYTES = 4 * 1024 * 1024
export const ARCHIVE_RECORDED_MS = 1_000
/** Downloads of archives at one time. */
export const MAX_ARCHIVE_DOWNLOADS = 8
/** A download that a browser takes more slowly than this is broken off, after pauses of so long together. */
export const ARCHIVE_BYTES_PER_SECOND = 8 * 1024
export const ARCHIVE_PAUSE_MS = 60_000
/** Events of a room, bytes of own events, and files, that are read at once for an archive. */
export const EVENTS_READ_AT_ONCE = 1_000
export const EVENT_BYTES_READ_AT_ONCE = 1024 * 1024
export const MEDIA_READ_AT_ONCE = 100
export const BACKED_UP_KEYS_READ_AT_ONCE = 500
