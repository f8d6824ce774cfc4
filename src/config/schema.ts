import type { ServerName } from '../core/ids.ts'
import { type Static, Type } from '../core/shapes.ts'
import { backupSection } from './backup.ts'
import { callsSection } from './calls.ts'
import { clusterSection } from './cluster.ts'
import { federationSection } from './federation.ts'
import { httpsSection } from './https.ts'
import { identitySection } from './identity.ts'
import { mediaSection } from './media.ts'
import { moderationSection } from './moderation.ts'
import { oauthSection } from './oauth.ts'
import { outboundSection } from './outbound.ts'
import { jwtSection, ldapSection } from './outside-logins.ts'
import { choice, flag, integer, OF_NODE, port, section, text } from './parts.ts'
import { qrLoginSection } from './qr-login.ts'
import { registrationSection } from './registration.ts'
import { roomsSection } from './rooms.ts'
import { userSessionsSection } from './sessions.ts'
import { singleSignOnSection } from './single-sign-on.ts'

/**
 * Every option of the server: its type, bounds, default and its text for operators. Validation, environment
 * names, `config/example.yaml`, `config/schema.json` and `docs/operations.md` all come from here.
 *
 * Own keywords: `secret` (never printed; may also be given as `<key>_file`), `path` (made absolute against the directory of the
 * file that names it), `example` (shown where there is no default), `compact` (a section shown on one line), `ofNode` (nodes of a
 * cluster may have different values; all other options they must share).
 */

const bucket = (description: string, perSecond: number, burst: number) =>
  section(
    description,
    {
      per_second: Type.Number({
        description: 'Requests regained per second.',
        default: perSecond,
        exclusiveMinimum: 0,
        maximum: 1_000_000,
      }),
      burst: integer('Requests allowed at once after a pause.', burst, 1, 1_000_000),
    },
    { compact: true },
  )

const socketMode = () =>
  text('Who may connect to `socket`: its mode in octal digits.', { default: '660', pattern: '^0?[0-7]{3}$' })

type RoleName = 'client' | 'identity'

export const ConfigSchema = section('Configuration of a Hearth server.', {
  server_name: Type.Unsafe<ServerName>({
    type: 'string',
    format: 'server-name',
    default: 'localhost',
    description:
      'The name after the colon in user ids (`@alice:example.org`). It is part of every id and cannot be changed once users exist. The default is for trying things out on one machine.',
  }),
  public_base_url: Type.Optional(
    text(
      'Where clients reach this server, as they see it through the reverse proxy. Without it: `http://` and the listen address.',
      {
        format: 'http-url',
        example: 'https://matrix.example.org',
      },
    ),
  ),
  roles: Type.Array(Type.Unsafe<RoleName>({ type: 'string', enum: ['client', 'identity'] }), {
    description:
      'What this server does: `client` is the homeserver, `identity` the identity service. Each may run alone, with a database of its own.',
    default: ['client', 'identity'],
    minItems: 1,
    maxItems: 2,
  }),
  data_dir: text(
    'Directory for the signing keys, media and, without `database.url`, the embedded Postgres. It is created at the first start, readable by its owner only.',
    { default: 'data', path: true, minLength: 1, ofNode: true },
  ),
  listen: section(
    'Where the server accepts HTTP.',
    {
      host: text('Address to listen on; `0.0.0.0` or `::` for all.', { default: '127.0.0.1', minLength: 1 }),
      port: port('Port to listen on; 0 takes a free one.', 8008),
      socket: Type.Optional(
        text(
          'A unix socket to listen on too, for a reverse proxy on this machine, whose `X-Forwarded-For` is believed. One that a killed server left is removed, one on which somebody listens is not.',
          { path: true, minLength: 1, example: '/run/hearth/hearth.sock' },
        ),
      ),
      socket_mode: socketMode(),
    },
    OF_NODE,
  ),
  https: httpsSection,
  trusted_proxies: Type.Array(Type.String({ format: 'cidr' }), {
    description:
      'Addresses or CIDR ranges of reverse proxies whose `X-Forwarded-For` is believed. From anyone else the header is ignored.',
    default: [],
    maxItems: 100,
    example: ['127.0.0.1', '10.0.0.0/8'],
    ...OF_NODE,
  }),
  database: section(
    'The Postgres database.',
    {
      url: Type.Optional(
        text(
          'Connection string of a Postgres 14 or later. Without it the server starts and owns a Postgres of its own in `data_dir`.',
          {
            format: 'postgres-url',
            secret: true,
            example: 'postgres://hearth:password@db.example.org/hearth',
          },
        ),
      ),
      replicas: Type.Array(Type.String({ format: 'postgres-url' }), {
        description:
          'Connection strings of streaming replicas of `database.url`. Far history, searches, and what operators list and count are read there, while they follow; everything else, and all of it while they do not, at the primary.',
        default: [],
        maxItems: 8,
        hidden: true,
        example: ['postgres://hearth:password@db2.example.org/hearth'],
      }),
      pool_size: integer('Connections used for transactions, besides the one for reads.', 6, 1, 200),
    },
    OF_NODE,
  ),
  cluster: clusterSection,
  log: section(
    'Logging, to standard output.',
    {
      level: choice('Lowest level written.', ['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'info'),
      format: choice(
        'One JSON object per line, or a line for people; `auto` is `pretty` on a terminal and `json` elsewhere.',
        ['auto', 'json', 'pretty'],
        'auto',
      ),
    },
    OF_NODE,
  ),
  registration: registrationSection,
  sessions: userSessionsSection,
  login_tokens: section(
    'Tokens with which a client logs in once: after single sign-on, or with the help of another client.',
    {
      lifetime_seconds: integer('Lifetime of a token.', 120, 5, 3_600),
      from_session: flag(
        'Whether a logged-in client may request a token, so that another client can log in as the same user.',
        true,
      ),
    },
  ),
  qr_login: qrLoginSection,
  ldap: ldapSection,
  jwt: jwtSection,
  sso: singleSignOnSection,
  oauth: oauthSection,
  rate_limits: section(
    'Token buckets: `per_second` requests are regained each second, up to `burst` at once. An empty one answers 429 with `retry_after_ms`.',
    {
      enabled: flag('Switch for all limits.', true),
      message: bucket('Events sent, per user.', 5, 50),
      login: bucket(
        'Login attempts, per address; wrong passwords, per account and address, and ten times as many per account.',
        0.2,
        10,
      ),
      registration: bucket('Registrations, per address.', 0.2, 10),
      join: bucket('Joins, per user.', 0.5, 20),
      invite: bucket('Invites, per user; those by other servers, per server and invited user.', 0.5, 20),
      create_room: bucket('Rooms made, per user.', 0.2, 10),
      federation: bucket(
        'Requests of other servers that are unsigned, or whose server is not verified yet, per address.',
        50,
        200,
      ),
      search: bucket('Searches of messages, per user.', 1, 20),
      report: bucket('Reports of events, rooms and users, per user.', 0.1, 20),
      media: bucket('Files uploaded and downloaded, per user, address or other server.', 20, 200),
      other: bucket('Every other limited endpoint, per user or address.', 10, 100),
    },
  ),
  passwords: section('How passwords are checked and kept.', {
    min_length: integer('Shortest password accepted for a new account.', 8, 1, 512),
    require_lowercase: flag('Whether a new password must have a lower-case letter.', false),
    require_uppercase: flag('Whether a new password must have a capital letter.', false),
    require_digit: flag('Whether a new password must have a digit.', false),
    require_symbol: flag('Whether a new password must have a character that is neither letter nor digit.', false),
    scrypt: section('Cost of one password hash.', {
      log2_cost: integer(
        'Base-2 logarithm of the cost; memory per hash is 128 bytes × 2^log2_cost × block_size.',
        17,
        1,
        20,
      ),
      block_size: integer('Block size.', 8, 1, 32),
      parallelism: integer('Parallelism.', 1, 1, 16),
    }),
  }),
  rooms: roomsSection,
  moderation: moderationSection,
  server_notices: section('Messages from the server to its users, each in a room that they cannot leave.', {
    localpart: Type.Optional(
      text(
        'The localpart of the user who sends them. Nobody else can have this account. Without it there are no notices.',
        { pattern: '^[a-z0-9._=/+-]{1,200}$', example: 'notices' },
      ),
    ),
    display_name: text('The display name of this user.', { default: 'Server notices', minLength: 1, maxLength: 256 }),
    avatar_url: Type.Optional(
      text('The picture of this user.', { pattern: '^mxc://[^\\s]+$', example: 'mxc://example.org/notices' }),
    ),
    room_name: text('The name of the rooms.', { default: 'Server notices', minLength: 1, maxLength: 256 }),
  }),
  application_services: section('Bridges and bots that are registered with this server.', {
    registrations: Type.Array(Type.String({ path: true, minLength: 1 }), {
      description:
        'Registration files, or directories of `.yaml` and `.json` registration files. A changed file takes effect within seconds, without a restart; if it has a mistake, that is logged, and the old registration stays.',
      default: [],
      maxItems: 1_000,
      example: ['registrations/'],
    }),
  }),
  search: section('Searching messages.', {
    enabled: flag(
      'Whether the words of messages are indexed, and users can search them. Encrypted messages never are.',
      true,
    ),
  }),
  user_directory: section('Searching users by name.', {
    enabled: flag('Whether users can search others. If not, nobody is found.', true),
    all_local_users: flag(
      'Whether all users of this server are found by each other. If not, only those who share a room, or who are in a room that anyone may join or read.',
      false,
    ),
  }),
  profiles: section('Names and pictures of the users of this server.', {
    visible_to: choice(
      'Who may look them up here: `everybody`, `users` (who are signed in), or `neighbours`: who share a room with them. Members of a room see its other members in any case.',
      ['everybody', 'users', 'neighbours'],
      'everybody',
    ),
    over_federation: flag('Whether other servers may look them up.', true),
  }),
  calls: callsSection,
  presence: section('Who is online.', { enabled: flag('Whether presence is tracked and sent to clients.', true) }),
  metrics: section(
    'Prometheus metrics and health, on a listener of their own.',
    {
      enabled: flag('Whether this listener runs.', true),
      host: text('Address to listen on. Keep it off the internet.', { default: '127.0.0.1', minLength: 1 }),
      port: port('Port to listen on; 0 takes a free one.', 9008),
      socket: Type.Optional(
        text('A unix socket to listen on too.', { path: true, minLength: 1, example: '/run/hearth/metrics.sock' }),
      ),
      socket_mode: socketMode(),
    },
    OF_NODE,
  ),
  tracing: section(
    'Spans of requests, statements and sends, for a collector of OpenTelemetry. Without an address there are none.',
    {
      otlp_endpoint: Type.Optional(
        text('Where spans are sent by OTLP over HTTP, without `/v1/traces`.', {
          format: 'http-url',
          example: 'http://127.0.0.1:4318',
        }),
      ),
      authorization: Type.Optional(
        text('The `Authorization` header for the collector, if it wants one.', {
          secret: true,
          minLength: 1,
          example: 'Bearer a-long-word',
        }),
      ),
      sample_ratio: Type.Number({
        description: 'The share of requests of which spans are sent.',
        default: 1,
        exclusiveMinimum: 0,
        maximum: 1,
      }),
    },
    OF_NODE,
  ),
  well_known: section('What `/.well-known/` tells clients and servers.', {
    client_base_url: Type.Optional(
      text('The homeserver address told to clients. Without it: `public_base_url`.', {
        format: 'http-url',
        example: 'https://matrix.example.org',
      }),
    ),
    identity_server_base_url: Type.Optional(
      text('The identity server told to clients.', { format: 'http-url', example: 'https://identity.example.org' }),
    ),
    server: Type.Optional(
      text('Host and port that other servers should talk to instead of the server name.', {
        format: 'server-name',
        example: 'matrix.example.org:443',
      }),
    ),
    policy_server_key: Type.Optional(
      text(
        'The public ed25519 key of the policy server at this server name, in base64, told to who names it in a room.',
        {
          example: '6yhHGKhCiXTSEN2ksjV7kX/N6rBQZ3Xb+M7LlC6NS+s',
        },
      ),
    ),
    support_page: Type.Optional(
      text('A page that tells users where to find help.', {
        format: 'http-url',
        example: 'https://example.org/support',
      }),
    ),
    support_email: Type.Optional(
      text("Email address of this server's administrator.", {
        pattern: '^[^@\\s]+@[^@\\s]+$',
        example: 'admin@example.org',
      }),
    ),
  }),
  federation: federationSection,
  outbound: outboundSection,
  media: mediaSection,
  backup: backupSection,
  identity: identitySection,
  contact: section(
    'Email addresses and phone numbers of accounts. The homeserver validates them itself, with the messages and limits that `identity` describes, or has identity servers do so.',
    {
      allowed_emails: Type.Array(Type.String({ minLength: 1 }), {
        description: 'Patterns of email addresses that accounts may have, with `*` and `?`; empty: all.',
        default: [],
        maxItems: 1_000,
        example: ['*@example.org'],
      }),
      allowed_numbers: Type.Array(Type.String({ minLength: 1 }), {
        description:
          'Patterns of phone numbers that accounts may have: digits with the country code and without `+`, with `*` and `?`; empty: all.',
        default: [],
        maxItems: 1_000,
        example: ['49*'],
      }),
      hide_known: choice(
        'Whether the answer to a request for a token (`.../requestToken`) hides whether an account has the address; a message is sent only if it makes sense. `auto`: as `true` while registration is closed. Errors of the mail server are then only in the log.',
        ['auto', true, false],
        'auto',
      ),
      validated_elsewhere: Type.Array(Type.Unsafe<'email' | 'msisdn'>({ type: 'string', enum: ['email', 'msisdn'] }), {
        description:
          "Kinds of addresses that the identity server of a client's request validates (`id_server`: the one in this process or one of `identity_servers.trusted`), instead of this homeserver. For other kinds `id_server` is ignored. Phone numbers are always validated there while no gateway for text messages is set.",
        default: [],
        maxItems: 2,
        example: ['msisdn'],
      }),
    },
  ),
  identity_servers: section(
    'Identity servers at which users of this homeserver can publish addresses, and through which they can invite.',
    {
      trusted: Type.Array(Type.Unsafe<ServerName>({ type: 'string', format: 'server-name' }), {
        description:
          'Names of identity servers that users may use through this homeserver, beside its own. Others are refused with `M_SERVER_NOT_TRUSTED`.',
        default: [],
        maxItems: 100,
        example: ['vector.im', 'matrix.org'],
      }),
    },
  ),
  limits: section('Bounds on what one request, or one address, may cost.', {
    max_body_bytes: integer('Largest request body.', 1_048_576, 65_536, 104_857_600),
    max_connections: integer(
      'Connections at the same time. Above that, a connection that has sent nothing yet is closed, else the new one.',
      20_000,
      100,
      1_000_000,
      OF_NODE,
    ),
    max_connections_per_address: integer(
      'Of these, connections of one IPv4 address or IPv6 network of 64 bits. It does not apply to `trusted_proxies`, nor to this machine itself on `listen`, which may be a proxy.',
      512,
      10,
      1_000_000,
      OF_NODE,
    ),
    max_sync_timeout_ms: integer('Longest time that a sync may wait for news.', 120_000, 1_000, 600_000),
  }),
})

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends string | number | boolean
    ? T
    : { readonly [Key in keyof T]: Frozen<T[Key]> }

/** The whole configuration, complete and checked. Keys are spelled as in the file; a key without a value or default is absent. */
export type Config = Frozen<Static<typeof ConfigSchema>>
