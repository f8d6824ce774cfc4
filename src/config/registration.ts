import { Type } from '../core/shapes.ts'
import { choice, flag, integer, section, text } from './parts.ts'
import { termsSection } from './terms.ts'

const contact = (what: string) =>
  choice(
    `Whether somebody who registers confirms ${what}: \`no\`, \`optional\` (the client may offer it) or \`required\`.`,
    ['no', 'optional', 'required'],
    'no',
  )

const captchaSection = section('A captcha to solve before an account is made.', {
  vendor: choice('Vendor of the captcha; `none`: no captcha.', ['none', 'recaptcha', 'hcaptcha', 'turnstile'], 'none'),
  site_key: Type.Optional(text('The public key from the vendor.', { minLength: 1, example: '6Lc...' })),
  secret: Type.Optional(
    text('The secret key from the vendor.', { secret: true, minLength: 1, example: 'the-secret-key' }),
  ),
  verify_url: Type.Optional(
    text("Address for verifying answers, if it is not the vendor's usual one.", {
      format: 'http-url',
      example: 'https://www.recaptcha.net/recaptcha/api/siteverify',
    }),
  ),
})

export const registrationSection = section('Who may create an account, and what they must do for it.', {
  enabled: choice(
    '`true`: anyone who reaches the server. `false`: nobody, except by `token`. `auto`: as `true` while the server listens on loopback only, else as `false`.',
    ['auto', true, false],
    'auto',
  ),
  token: Type.Optional(
    text('A registration token: with it anybody can create an account, also while registration is closed.', {
      secret: true,
      pattern: '^[A-Za-z0-9._~-]{1,64}$',
      example: 'a-long-random-word',
    }),
  ),
  require_token: flag('Ask everyone for the token, also while registration is open.', false),
  shared_secret: Type.Optional(
    text(
      'With this secret anybody can create accounts, administrators too, by `/_synapse/admin/v1/register`. Without it that path is closed.',
      { secret: true, minLength: 16, maxLength: 512, example: 'a-long-random-sentence' },
    ),
  ),
  approval: flag(
    'Whether a new account is locked until an administrator lets it in: `GET /_hearth/admin/v1/approvals` lists those that wait.',
    false,
  ),
  auto_join: section('Rooms that everybody joins who gets an account here. Users of bridges do not.', {
    rooms: Type.Array(Type.String({ pattern: '^[#!][^\\s]+$', maxLength: 255 }), {
      description: 'Addresses or ids of rooms. What cannot be reached is tried again for some days.',
      default: [],
      maxItems: 50,
      example: ['#welcome:example.org'],
    }),
    guests: flag('Whether guests do too, where rooms admit them.', false),
    host: Type.Optional(
      text(
        'The localpart of a user of this server who makes those of these rooms that are missing here, public ones, and who invites newcomers where nobody enters without.',
        { pattern: '^[a-z0-9._=/+-]{1,200}$', example: 'host' },
      ),
    ),
  }),
  allow_guests: flag('Whether guest accounts can be created while registration is open.', true),
  email: contact('an email address'),
  msisdn: contact('a phone number'),
  captcha: captchaSection,
  terms: termsSection(
    'Policies that everyone must accept to create an account.',
    'The policies, each in one or more languages, of which a person accepts one.',
  ),
  max_users: integer(
    'The most accounts, without guests and deactivated ones; 0: any number. Above that, people are told to write to `well_known.support_email`.',
    0,
    0,
    1_000_000_000,
  ),
})
