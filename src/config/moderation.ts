import { Type } from '../core/shapes.ts'
import { choice, flag, integer, section, text } from './parts.ts'

const patterns = (description: string, example: readonly string[]) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { description, default: [], maxItems: 1_000, example })

/** What the antispam service is asked about. */
export const ANTISPAM_QUESTIONS = [
  'user_may_join_room',
  'user_may_invite',
  'user_may_send_3pid_invite',
  'federated_user_may_invite',
  'accept_make_join',
  'user_may_create_room',
  'user_may_create_room_alias',
  'check_event_for_spam',
  'check_registration_for_spam',
] as const

/** What no service is asked about, unless the operator says so. */
const BY_WISH: ReadonlySet<string> = new Set(['check_event_for_spam', 'user_may_send_3pid_invite'])

const antispamSection = section(
  'A service of yours that may refuse what people do. It is asked by `POST <url>/<question>`, with JSON (docs/administration.md).',
  {
    url: Type.Optional(
      text('Its address, on the public internet or in `outbound.allow_ranges`. Without it nobody is asked.', {
        format: 'http-url',
        example: 'http://127.0.0.1:9000/antispam',
      }),
    ),
    token: Type.Optional(
      text('Sent with each question, as a bearer token.', {
        secret: true,
        minLength: 1,
        example: 'a-long-random-word',
      }),
    ),
    questions: Type.Array(
      Type.Unsafe<(typeof ANTISPAM_QUESTIONS)[number]>({ type: 'string', enum: ANTISPAM_QUESTIONS }),
      {
        description:
          'What it is asked about. `check_event_for_spam` is asked for each message, and each waits for the answer. `user_may_send_3pid_invite` is about invitations to addresses; a service that does not know it refuses them all.',
        default: ANTISPAM_QUESTIONS.filter((question) => !BY_WISH.has(question)),
      },
    ),
    timeout_ms: integer('How long its answer is waited for.', 2_000, 50, 30_000),
    fail_open: flag(
      'Whether what it does not answer in time is allowed. If not, people are told to try again later.',
      true,
    ),
  },
)

export const moderationSection = section('What people may do here besides what the rules of rooms say.', {
  block_invites_from: patterns(
    'Invitations from these users (`@*:spam.example`) or servers (`*.spam.example`) are refused, with `*` and `?`. Administrators are not concerned.',
    ['@spam*:*', 'spam.example'],
  ),
  forbidden_names: patterns('Names that nobody can register, before the colon, with `*` and `?`.', [
    'admin*',
    'support',
  ]),
  create_rooms: choice('Who may make rooms.', ['everybody', 'administrators'], 'everybody'),
  create_aliases: choice('Who may give rooms addresses.', ['everybody', 'administrators'], 'everybody'),
  ban_as: Type.Optional(
    text(
      'A user of this server, before the colon, in whose name those whom policy lists ban are banned from rooms: from those in which this user is and has the power to ban. A ban ends with its rule. Without it, lists put nobody out of rooms.',
      { minLength: 1, maxLength: 200, example: 'moderator' },
    ),
  ),
  write_acls: flag(
    'Whether the user of `ban_as` also keeps the servers that policy lists ban in the server ACLs (`m.room.server_acl`) of the rooms in which this user may set them. What people wrote there stays.',
    false,
  ),
  antispam: antispamSection,
})
