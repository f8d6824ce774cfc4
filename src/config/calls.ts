import { Type } from '../core/shapes.ts'
import { flag, integer, OF_NODE, section, text } from './parts.ts'

const turnSection = section(
  'TURN servers, through which calls between two people get across NAT and firewalls. All of them take the same credentials: a `shared_secret`, or a `user` with a `password`.',
  {
    uris: Type.Array(Type.String({ pattern: '^(?:turns?|stuns?):[^\\s]+$' }), {
      description: 'Addresses of the servers, best first. Without any, clients are told that there is none.',
      default: [],
      maxItems: 50,
      example: ['turn:turn.example.org:3478?transport=udp', 'turns:turn.example.org:5349?transport=tcp'],
    }),
    shared_secret: Type.Optional(
      text(
        'The secret that the servers share with this one: `static-auth-secret` of coturn, with `use-auth-secret`. Every client gets credentials of its own from it, which expire.',
        { secret: true, minLength: 1, example: 'a-long-random-sentence' },
      ),
    ),
    user: Type.Optional(text('The user name at the servers, where they know no shared secret.', { minLength: 1 })),
    password: Type.Optional(text('The password of this user.', { secret: true, minLength: 1 })),
    lifetime_seconds: integer(
      'How long credentials from `shared_secret` are good for. A call that lasts longer goes on.',
      86_400,
      60,
      2_592_000,
    ),
    allow_guests: flag('Whether guests may use the servers.', true),
  },
)

const livekitSection = section(
  'The LiveKit server that carries calls of groups (MatrixRTC). Hearth itself lets clients into it; no authorisation service is needed beside it. Set `room.auto_create: false` in LiveKit, so that nobody but Hearth makes rooms there.',
  {
    url: Type.Optional(
      text('Where clients reach LiveKit. Without it there are no calls of groups.', {
        pattern: '^wss?://[^\\s?#]+$',
        example: 'wss://livekit.example.org',
      }),
    ),
    api_url: Type.Optional(
      text(
        'Where Hearth reaches LiveKit, to make rooms. Without it: `url`, by https. It may be an address of this machine.',
        {
          format: 'http-url',
          example: 'http://127.0.0.1:7880',
          ...OF_NODE,
        },
      ),
    ),
    api_key: Type.Optional(text('The name of the API key in LiveKit (`keys`).', { minLength: 1, example: 'hearth' })),
    api_secret: Type.Optional(
      text('The secret of this API key.', {
        secret: true,
        minLength: 32,
        example: 'a-random-sentence-of-32-characters',
      }),
    ),
    full_access_servers: Type.Array(Type.String({ format: 'server-name' }), {
      description:
        'Other homeservers whose users may begin a call here. Users of this server always may; all others may only join one that has begun.',
      default: [],
      maxItems: 1_000,
      example: ['example.com'],
    }),
  },
)

const delayedEventsSection = section(
  'Events that clients have sent later. Clients in a call need them: a client that vanishes leaves the call by one.',
  {
    max_delay_seconds: integer('The longest delay.', 86_400, 1, 31_536_000),
    max_scheduled: integer('How many a user may have waiting; 0 switches them off.', 100, 0, 1_000),
  },
)

export const callsSection = section('Voice and video calls.', {
  turn: turnSection,
  livekit: livekitSection,
  delayed_events: delayedEventsSection,
})
