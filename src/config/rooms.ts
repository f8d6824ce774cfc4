import { Type } from '../core/shapes.ts'
import { choice, flag, integer, section, text } from './parts.ts'

const retentionSection = section(
  'For how long messages are kept. Rooms say so themselves (`m.room.retention`), within bounds. What is over is shown to nobody any more, and removed in the background; state stays, and so does the newest event of a room. Other servers may keep what they have.',
  {
    enabled: flag(
      'Whether messages are ever removed by their age. What was removed is lost: make a backup before.',
      false,
    ),
    default_days: integer('For rooms that say nothing of it; 0: for ever.', 0, 0, 36_500),
    shortest_hours: integer('No room has its messages removed before this time.', 24, 0, 876_000),
    longest_days: integer('Rooms that want theirs to be kept for longer get this.', 36_500, 1, 36_500),
  },
)

export const roomsSection = section('Rooms made on this server.', {
  encryption: choice(
    'Which new rooms are encrypted though the request does not say so: `no`, `private` (all that not anybody can join) or `all`. Rooms of bridges are not concerned.',
    ['no', 'private', 'all'],
    'no',
  ),
  policy_server: section(
    'The policy server of new rooms: it sees each event first, once a user of its server is in the room.',
    {
      via: Type.Optional(text('The name of its server.', { format: 'server-name', example: 'policy.example.org' })),
      public_key: Type.Optional(
        text('Its ed25519 key, in unpadded base64.', {
          pattern: '^[A-Za-z0-9+/]{43}$',
          example: '6yhHGKhCiXTSEN2ksjV7kXN6rBQZ3XbM7LlC6NSsQAA',
        }),
      ),
    },
  ),
  default_version: choice(
    "Version of a new room if the request names none. Use 12 once your users' clients support it (docs/decisions/0004-new-rooms-are-version-11.md says how to check that).",
    ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12'],
    '11',
  ),
  retention: retentionSection,
})
