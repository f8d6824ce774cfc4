import type { Row } from '../identity/rows.ts'

/**
 * Where each row of the client interface's description is shown: the row, the test file below `test/`, and a piece of a test's name
 * in it. `rows.test.ts` fails when a test is renamed or gone.
 */
const accounts = (file: string) => `accounts/${file}.test.ts`
const contact = (file: string) => `contact/${file}.test.ts`
const rooms = (file: string) => `rooms/${file}.test.ts`

/** "What the service does". */
const SERVICE: readonly Row[] = [
  ['2: JSON, UTF-8, underscores', 'http/errors.test.ts', 'bytes that are not UTF-8'],
  [
    '3: PUT with a transaction ID is idempotent',
    rooms('write/transactions'),
    'makes one event of 16 concurrent repeats',
  ],
  ['3: its scope is one access token', rooms('write/transactions'), 'counts for one token and one path'],
  ['4: OPTIONS runs no logic', 'http/answers.test.ts', 'answers OPTIONS without running the endpoint'],
  ['4: CORS headers on all responses', 'http/answers.test.ts', 'is allowed on %s'],
  ['5: the host of a user ID', 'outbound/client-discovery.test.ts', 'what follows the first colon, without its port'],
  ['5: 404 is IGNORE', 'outbound/client-discovery.test.ts', '404 means IGNORE'],
  ['5: FAIL_PROMPT', 'outbound/client-discovery.test.ts', '%i means FAIL_PROMPT'],
  ['5: FAIL_ERROR', 'outbound/client-discovery.test.ts', 'a base_url that is not a URL means FAIL_ERROR'],
  [
    '5: versions are called',
    'outbound/client-discovery.test.ts',
    'finds the homeserver of a user, and calls its versions',
  ],
  ['5: the identity server is checked', 'outbound/client-discovery.test.ts', 'is checked at its status endpoint'],
  [
    '5: m.identity_server without base_url',
    'outbound/client-discovery.test.ts',
    'without base_url means FAIL_ERROR by the seed',
  ],
]

/** "Resources and their fields". */
const RESOURCES: readonly Row[] = [
  ['Discovery information', 'http/answers.test.ts', 'tells clients and servers where to go'],
  [
    'Device: generated, or supplied',
    accounts('account/registration'),
    'keeps the device id and name that the client chose',
  ],
  ['Device: at most one active token', accounts('session/login'), 'keeps one token per device'],
  ['Third party identifier', contact('account3pid'), 'the list has medium, address, validated_at, added_at'],
  ['Filter: event_fields', 'core/filter.test.ts', 'keeps a key named __proto__ as a key'],
  ['Filter: event_fields, dots and escapes', 'core/property-path.test.ts', '%j is %j'],
  ['Filter: event_format', 'rooms/read/erased-users.test.ts', 'is shown redacted to who comes later, by every reader'],
  ['Filter: presence, account_data, room', 'core/filter.test.ts', 'may have every field, and fields of other releases'],
  ['Filter: EventFilter', 'core/filter.test.ts', '%j lets through %j'],
  ['Filter: RoomFilter, rooms and not_rooms', 'core/filter.test.ts', '%j on room %s: %s'],
  ['Filter: include_leave, lazy_load_members', 'core/filter.test.ts', 'carries every option'],
  ['Filter: lazy_load_members', 'sync/sync.test.ts', 'load members lazily: those who speak, once'],
  ['Filter: contains_url', 'core/filter.test.ts', '%j lets through %j'],
  ['Room event', rooms('read/state-readers'), 'is read by type and key, as content or as an event'],
  ['Room event: room_id absent from sync', 'sync/sync.test.ts', 'give each event once over a chain of tokens'],
  ['Room event: redacted_because', rooms('write/redactions'), 'is the first one, whoever redacts again'],
  ['Room event: transaction_id', 'sync/sync.test.ts', 'tell only the sending client its transaction id'],
  ['State event: prev_content', rooms('read/state-readers'), 'tells what it took the place of'],
  ['State event: @ is reserved', 'core/auth/vectors.test.ts', 'authorisation rules of version $id'],
]

/** "States and transitions": the membership table is `TABLE` in the test itself. */
const STATES: readonly Row[] = [
  ['membership: each row, by who may', rooms('act/membership'), '$from -> $to by the $by $outcome: $meaning'],
  ['join to join', rooms('act/membership'), 'join -> join carries a new name or picture'],
  ['any to knock', rooms('act/membership'), '%s -> knock is not for this room'],
  ['sender and state_key differ except for join', rooms('act/membership'), 'is joined by oneself alone'],
  ['no prev_content: leave', 'core/auth/membership-table.test.ts', 'one who left counts as one who was never there'],
  [
    'access token: soft_logout true',
    accounts('session/refresh'),
    'logs in again with its device id after a soft logout',
  ],
  ['access token: soft_logout false', accounts('actors'), 'an expired one is a soft logout'],
]

/** "Endpoints". */
const ENDPOINTS: readonly Row[] = [
  ['GET versions', 'http/answers.test.ts', 'speaks of releases in the form of each dialect'],
  ['GET .well-known/proto/client', 'http/answers.test.ts', 'serves discovery under both names'],
  ['POST register/msisdn/requestToken: 200', contact('tokens'), '200 {sid, submit_url} for a number'],
  ['POST register/msisdn/requestToken: submit_url', contact('tokens'), 'is submitted there without an access token'],
  [
    'POST register/msisdn/requestToken: in use',
    contact('tokens'),
    '400 M_THREEPID_IN_USE for an address of an account',
  ],
  ['POST register/msisdn/requestToken: denied', contact('tokens'), '403 M_THREEPID_DENIED for addresses'],
  [
    'requestToken: id_server ignored',
    contact('tokens'),
    'id_server is ignored where the homeserver handles verification',
  ],
  [
    'requestToken: id_server used',
    contact('remote-identity-server.long'),
    '200 {sid} of the identity server, which sends the mail',
  ],
  [
    'requestToken: M_SERVER_NOT_TRUSTED',
    contact('remote-identity-server.long'),
    'refuses what it must: 400 M_SERVER_NOT_TRUSTED',
  ],
  ['requestToken: id_access_token required', contact('remote-identity-server.long'), 'M_MISSING_PARAM without a token'],
  ['POST account/password/email/requestToken', contact('tokens'), '200 {sid}, without submit_url'],
  ['POST account/password/email/requestToken: not found', contact('tokens'), 'M_THREEPID_IN_USE is not returned'],
  ['POST account/password/msisdn/requestToken', contact('tokens'), '200 {sid, submit_url} for a number'],
  ['POST account/password', accounts('account/passwords-and-addresses'), 'leaves the presented token alive'],
  [
    'POST account/password: logout_devices',
    accounts('account/passwords-and-addresses'),
    'leaves other devices alone with logout_devices false',
  ],
  [
    'POST account/password: 401',
    accounts('account/passwords-and-addresses'),
    'tells its flows: the password, or an address',
  ],
  ['POST account/deactivate', accounts('account/deactivation'), 'ends every way in'],
  [
    'POST account/deactivate: success without binds',
    accounts('account/deactivation'),
    'says `success` where nothing was bound',
  ],
  ['POST account/deactivate: id_server', contact('account3pid'), 'one that is not trusted is "no-support"'],
  ['POST account/deactivate: 401', accounts('account/deactivation'), 'wants proof, with flows'],
  ['GET register/available', accounts('account/registration'), 'says yes, taken, or not a name'],
  ['GET register/available: M_EXCLUSIVE', accounts('account/registration'), 'are theirs alone'],
  ['GET account/3pid', contact('account3pid'), '401 flows without auth, whatever the session; 200 {} with it'],
  ['POST account/3pid', contact('account3pid'), '200, and the address is bound'],
  ['POST account/3pid: 403', contact('account3pid'), '403 M_THREEPID_AUTH_FAILED when the credentials show nothing'],
  ['POST account/3pid/add', contact('account3pid'), '401 flows without auth, whatever the session'],
  ['POST account/3pid/add: of another account', contact('account3pid'), 'refuses a 3PID already on another account'],
  ['POST account/3pid/bind', contact('account3pid'), 'it is tracked for a later unbind'],
  ['POST account/3pid/bind: errors', contact('account3pid'), 'errors of the identity service are proxied'],
  ['POST account/3pid/delete', contact('account3pid'), 'takes the address from the account and unbinds it: "success"'],
  ['POST account/3pid/delete: no-support', contact('account3pid'), '"no-support" where it is not known'],
  [
    'GET user/{userId}/filter/{filterId}',
    'account-data/kept.test.ts',
    'are kept as they were given, once per definition',
  ],
  ['GET user/{userId}/filter/{filterId}: 404', 'account-data/kept.test.ts', 'are not found by %s'],
]

/** "Authentication". */
const AUTHENTICATION: readonly Row[] = [
  ['1: query and header', accounts('session/login'), 'takes the token from header and query, in both dialects'],
  ['2: M_MISSING_TOKEN', accounts('actors'), 'wants a token: of nobody, and of a server that signs instead'],
  ['2: M_UNKNOWN_TOKEN', accounts('actors'), 'takes none that is unknown, of a deactivated user'],
  [
    '3: flows, params, session',
    accounts('account/interactive-auth'),
    'tells flows, params of each type that has some, and a session',
  ],
  [
    '3: stages in order, completed',
    accounts('account/interactive-auth'),
    "completes one flow's stages in order, told in `completed`",
  ],
  ['3: retryable failures', accounts('account/interactive-auth'), 'with errcode and error in the 401 body'],
  ['3: other failures', accounts('account/interactive-auth'), 'raises other failures as they are'],
  ['3: completed stages are not retried', accounts('account/interactive-auth'), 'does not run a completed stage again'],
  ['3: polling', contact('stages'), 'is polled with the session alone, once the creds were sent'],
  ['3: never without auth', accounts('account/interactive-auth'), 'never succeeds without auth'],
  ['4: m.login.password', accounts('session/login'), 'wants the password again, and then ends the session'],
  [
    '4: m.login.password, a bound 3PID',
    accounts('account/passwords-and-addresses'),
    'knows them in the stage m.login.password too',
  ],
  ['4: m.login.recaptcha', accounts('account/fallback-pages.long'), 'are completed by a client on its own'],
  ['4: m.login.sso', 'sso/proof.long.test.ts', 'm.login.sso'],
  ['4: m.login.email.identity', contact('stages'), 'waits for the link'],
  ['4: m.login.msisdn', contact('stages'), 'is completed by the code that was submitted to submit_url'],
  ['4: m.login.token', 'sso/login-tokens.test.ts', 'is good for one of 1,000 parallel uses'],
  ['4: m.login.dummy', accounts('account/registration'), 'asks for the dummy stage first'],
  ['5: identifier types', accounts('account/passwords-and-addresses'), 'knows %s'],
  ['6: M_WEAK_PASSWORD', accounts('account/registration'), 'a short password'],
  ['6: the policy', 'core/password-policy.test.ts', '%s'],
]

/** "Events". */
const EVENTS: readonly Row[] = [
  ['3: m.room.canonical_alias', rooms('act/aliases'), 'is an alias: %o is not'],
  ['4: m.room.create', 'core/auth/rules.test.ts', 'rule 1: m.room.create'],
  ['4: m.federate', 'core/auth/rules.test.ts', 'rule 3: m.federate'],
  ['5: m.room.join_rules', 'core/auth/member.test.ts', '5.3: joins by join rule and version'],
  ['6: m.room.member', 'core/auth/member.test.ts', '5.1: a membership event says whose and which'],
  ['6: third_party_invite', 'core/auth/third-party-invite.test.ts', '5.4.1: third-party invites'],
  ['6: invite_room_state', 'peers/inviting.test.ts', 'with what the room shows'],
  ['7: m.room.power_levels', 'core/auth/power-levels.test.ts', 'version %s: defaults of an empty event'],
  ['7: without an event', 'core/auth/power-levels.test.ts', 'version %s: without an event'],
]

/** "Limits" and "Versioning". */
const LIMITS: readonly Row[] = [
  ['1: 65535 bytes', rooms('write/event-limits'), 'may have 65535 bytes as federated, and not one more'],
  ['2: 255 bytes', rooms('write/event-limits'), 'may have a type and a state key of 255 bytes'],
  ['2: ids of 255 bytes', rooms('write/event-limits'), 'names room, users and events by ids of 255 bytes at most'],
  ['3: rate-limited endpoints', accounts('rate-limits'), '429 M_LIMIT_EXCEEDED over HTTP'],
  ['3: delete is not limited', contact('account3pid'), 'add and bind answer 429 M_LIMIT_EXCEEDED, delete does not'],
  ['4: client_secret and sid', contact('tokens'), 'bad number %j: 400 %s, and no message'],
  ['Versioning 1: r0', 'http/answers.test.ts', 'serves r0 and v3 under both roots'],
  ['Versioning 2: unstable_features', 'http/answers.test.ts', 'speaks of releases in the form of each dialect'],
  ['Versioning 3: room_version', 'core/room-version.test.ts', 'the table has versions 1 to 12 in order'],
]

/** An errcode, an operation that raises it, and the test that shows it. */
export type ErrorRow = readonly [errcode: string, operation: string, file: string, name: string]

/** "Errors", in the description's order. `docs/errors.md` repeats it. */
export const ERRORS: readonly ErrorRow[] = [
  ['M_FORBIDDEN', 'GET C/user/{userId}/account_data/{type}', 'http/errors.test.ts', "another user's data"],
  ['M_UNKNOWN_TOKEN', 'GET C/account/whoami', 'http/errors.test.ts', 'a foreign token'],
  ['M_MISSING_TOKEN', 'GET C/account/whoami', 'http/errors.test.ts', 'no token'],
  ['M_BAD_JSON', 'PUT C/user/{userId}/account_data/{type}', 'http/errors.test.ts', 'an array for an object'],
  ['M_NOT_JSON', 'POST C/login', 'http/errors.test.ts', 'half a body'],
  ['M_NOT_FOUND', 'GET C/user/{userId}/filter/{filterId}', 'account-data/kept.test.ts', 'are not found by %s'],
  ['M_LIMIT_EXCEEDED', 'POST C/account/password', accounts('rate-limits'), '429 M_LIMIT_EXCEEDED over HTTP'],
  [
    'M_UNKNOWN',
    'POST C/rooms/{roomId}/forget',
    rooms('act/membership'),
    'is forgotten once it is over, and not before',
  ],
  ['M_UNRECOGNIZED', 'every path that there is not', 'http/errors.test.ts', 'an unknown path'],
  ['M_UNAUTHORIZED', 'POST C/register', contact('stages'), 'waits for the link: M_UNAUTHORIZED'],
  ['M_USER_DEACTIVATED', 'POST C/login', accounts('session/login'), 'refuses a deactivated account, and its tokens'],
  ['M_USER_IN_USE', 'GET C/register/available', accounts('account/registration'), 'says yes, taken, or not a name'],
  [
    'M_INVALID_USERNAME',
    'GET C/register/available',
    accounts('account/registration'),
    'says yes, taken, or not a name',
  ],
  ['M_ROOM_IN_USE', 'POST C/createRoom', rooms('act/create-refusals'), 'refuses an alias that is taken'],
  ['M_INVALID_ROOM_STATE', 'POST C/createRoom', rooms('act/create-refusals'), 'a second create event'],
  [
    'M_THREEPID_IN_USE',
    'POST C/register/email/requestToken',
    contact('tokens'),
    '400 M_THREEPID_IN_USE for an address',
  ],
  ['M_THREEPID_NOT_FOUND', 'POST C/account/password/email/requestToken', contact('tokens'), '400 M_THREEPID_NOT_FOUND'],
  [
    'M_THREEPID_AUTH_FAILED',
    'POST C/account/3pid/add',
    contact('account3pid'),
    '403 M_THREEPID_AUTH_FAILED for a session',
  ],
  [
    'M_THREEPID_DENIED',
    'POST C/register/msisdn/requestToken',
    contact('tokens'),
    '403 M_THREEPID_DENIED for addresses',
  ],
  [
    'M_SERVER_NOT_TRUSTED',
    'POST C/register/email/requestToken',
    contact('remote-identity-server.long'),
    'refuses what it must',
  ],
  ['M_UNSUPPORTED_ROOM_VERSION', 'POST C/createRoom', rooms('act/create-refusals'), 'a version to come'],
  [
    'M_INCOMPATIBLE_ROOM_VERSION',
    'GET F/v1/make_join/{roomId}/{userId}',
    'peers/joining.test.ts',
    'M_INCOMPATIBLE_ROOM_VERSION with its version',
  ],
  ['M_BAD_STATE', 'POST C/rooms/{roomId}/unban', rooms('act/membership'), 'of others takes power'],
  [
    'M_GUEST_ACCESS_FORBIDDEN',
    'every operation that is not for guests',
    accounts('actors'),
    'sends guests away: M_GUEST_ACCESS_FORBIDDEN',
  ],
  [
    'M_CAPTCHA_NEEDED',
    'POST C/register',
    accounts('account/fallback-pages.long'),
    'are completed by a client on its own',
  ],
  [
    'M_CAPTCHA_INVALID',
    'POST C/register',
    accounts('account/fallback-pages.long'),
    'are completed by a client on its own',
  ],
  ['M_MISSING_PARAM', 'GET C/register/available', 'http/errors.test.ts', 'a missing query parameter'],
  ['M_INVALID_PARAM', 'GET C/profile/{userId}', 'http/errors.test.ts', 'a user id that is none'],
  [
    'M_TOO_LARGE',
    'PUT C/rooms/{roomId}/send/{eventType}/{txnId}',
    rooms('write/event-limits'),
    'may have 65535 bytes as federated',
  ],
  ['M_EXCLUSIVE', 'POST C/register', accounts('account/registration'), 'are theirs alone'],
  [
    'M_RESOURCE_LIMIT_EXCEEDED',
    'POST C/register',
    accounts('account/registration'),
    'says whom to write to, and never takes more',
  ],
  [
    'M_CANNOT_LEAVE_SERVER_NOTICE_ROOM',
    'POST C/rooms/{roomId}/leave',
    'admin/server/server-notices.test.ts',
    'which they read and do not leave',
  ],
  ['M_WEAK_PASSWORD', 'POST C/account/password', accounts('account/passwords-and-addresses'), 'a short password'],
]

export const ROWS: Readonly<Record<string, readonly Row[]>> = {
  '"What the service does"': SERVICE,
  '"Resources and their fields"': RESOURCES,
  '"States and transitions"': STATES,
  '"Endpoints"': ENDPOINTS,
  '"Authentication"': AUTHENTICATION,
  '"Events"': EVENTS,
  '"Limits" and "Versioning"': LIMITS,
}
