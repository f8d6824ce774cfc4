import { flag, integer, section, text } from './parts.ts'

export const lookupSection = section('From addresses to users.', {
  max_addresses: integer('Addresses that may be looked up in one request.', 10_000, 1, 1_000_000),
  addresses_per_day: integer(
    'Addresses that one user, or a network address without one, may look up in a day; 0: any number.',
    100_000,
    0,
    1_000_000_000,
  ),
  allow_plain: flag('Whether addresses may be looked up without hashing (algorithm `none`).', true),
  pepper_hours: integer(
    'The pepper of hashes is replaced when it is this old; 0: by the operator alone.',
    24,
    0,
    8_760,
  ),
})

export const invitesSection = section('Invitations to addresses that nobody has bound.', {
  lifetime_days: integer('An invitation that nobody has taken up for this long ends; 0: never.', 0, 0, 3_650),
  delivery_days: integer(
    'A homeserver that does not answer is told again and again of invitations to its user, for this long.',
    7,
    1,
    365,
  ),
  shown_letters: integer(
    'Letters of each half of the address that others are shown: with 1, `f...@b...`. Never more than half of them.',
    1,
    0,
    8,
  ),
  client_url: text('The web client that mails with invitations link to; the room id follows.', {
    default: 'https://app.element.io/#/room/',
    pattern: '^https?://[^\\s]+$',
  }),
})
