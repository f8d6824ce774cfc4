import { Type } from '../core/shapes.ts'
import { choice, flag, integer, OF_NODE, port, section, text } from './parts.ts'

const COUNTRY = '^[A-Z]{2}$'
const countries = (description: string) =>
  Type.Array(Type.String({ pattern: COUNTRY }), {
    description,
    default: [],
    maxItems: 300,
    example: ['DE', 'AT', 'CH'],
  })

const smtp = section('The mail server that messages are handed to.', {
  host: Type.Optional(
    text('Its host name. Without it messages become files in `identity.outbox`.', {
      minLength: 1,
      example: 'mail.example.org',
    }),
  ),
  port: port('Its port.', 587),
  security: choice(
    '`starttls` begins in plain text and refuses to go on without TLS; `tls` is encrypted from the start (port 465); `none` never is.',
    ['starttls', 'tls', 'none'],
    'starttls',
  ),
  verify_certificate: flag("Whether its certificate must be valid for the host's name.", true),
  ca_file: Type.Optional(
    text('Certificates (PEM) of the only authorities that may vouch for it, instead of the usual ones.', {
      path: true,
      minLength: 1,
      example: '/etc/ssl/our-ca.pem',
    }),
  ),
  user: Type.Optional(text('Name to log in with. Without it nobody logs in.', { minLength: 1, example: 'identity' })),
  password: Type.Optional(text('Password to log in with.', { secret: true, example: 'a-long-password' })),
  helo_name: Type.Optional(
    text('How this server calls itself there. Without it: its host name, or else its address.', {
      pattern: '^[A-Za-z0-9.:\\[\\]-]{1,255}$',
      example: 'identity.example.org',
      ...OF_NODE,
    }),
  ),
  connections: integer('Connections that are kept open at most.', 3, 1, 100),
  timeout_ms: integer('Longest wait for the server at each step.', 10_000, 50, 120_000),
})

export const mailSection = section('Mail of the identity service.', {
  from: Type.Optional(
    text("The sender's address. Without it: `no-reply` at the server's host name.", {
      pattern: '^[^@\\s<>]+@[^@\\s<>]+$',
      example: 'identity@example.org',
    }),
  ),
  smtp,
})

export const smsSection = section('Text messages of the identity service.', {
  gateway: choice(
    'Who sends them. `outbox` makes files in `identity.outbox`; `http` is described in `identity.sms.http`; `none` refuses every number.',
    ['outbox', 'twilio', 'vonage', 'http', 'none'],
    'outbox',
  ),
  account: Type.Optional(text('Account or key at the gateway.', { minLength: 1, example: 'AC0123456789' })),
  secret: Type.Optional(text("The account's secret.", { secret: true, example: 'a-long-secret' })),
  sender: text('Number or name that messages come from.', { default: 'Hearth', pattern: '^\\+?[A-Za-z0-9 ]{1,20}$' }),
  allowed_countries: countries('Countries that messages are sent to; empty: all.'),
  refused_countries: countries('Countries that no messages are sent to.'),
  timeout_ms: integer('Longest wait for the gateway.', 10_000, 50, 120_000),
  http: section(
    'A gateway of your own. In `url`, `headers` and `body` stand `{{to}}` (digits), `{{text}}`, `{{sender}}`, `{{account}}`, `{{secret}}` and `{{basic}}` (account and secret for basic authentication), each optionally with a filter: `{{text | json}}`, `{{text | url}}`.',
    {
      url: text('Where the request goes. One that is not on the public internet needs `outbound.allow_ranges`.', {
        default: '',
        hidden: true,
        example: 'https://sms.example.org/send',
      }),
      method: choice('How.', ['POST', 'GET', 'PUT'], 'POST'),
      headers: Type.Array(Type.String({ pattern: '^[A-Za-z0-9-]+: .+$' }), {
        description: 'Headers of the request.',
        hidden: true,
        default: ['Content-Type: application/json'],
        maxItems: 20,
      }),
      body: text('Body of the request.', {
        hidden: true,
        default: '{"to": "+{{to | json}}", "from": "{{sender | json}}", "text": "{{text | json}}"}',
      }),
      accepted: text(
        'Pattern that is found in the answer to a message that was taken; empty: any answer of status 2xx.',
        {
          default: '',
          format: 'pattern',
        },
      ),
      rejected: text('Pattern that is found in the answer when messages cannot go to that country or number.', {
        default: '',
        format: 'pattern',
      }),
    },
  ),
})

export const sessionsSection = section('Validation of email addresses and phone numbers.', {
  lifetime_hours: integer('How long a session may take, and how long a validated one may be used.', 24, 1, 720),
  max_wrong_mail_tokens: integer('Wrong tokens that end a session of an email address.', 10, 1, 1_000),
  max_wrong_sms_tokens: integer('Wrong codes that end a session of a phone number.', 5, 1, 100),
  next_link_hosts: Type.Array(Type.String({ pattern: '^[A-Za-z0-9.-]+(:[0-9]{1,5})?$' }), {
    description: 'Hosts that people may be sent on to after a validation (`next_link`); empty: any.',
    default: [],
    maxItems: 1_000,
    example: ['app.example.org'],
  }),
  messages_per_hour: section('How many messages may be asked for within an hour; 0: any number.', {
    mails_to_address: integer('To one email address.', 30, 0, 1_000_000),
    sms_to_address: integer('To one phone number.', 10, 0, 1_000_000),
    mails_of_sender: integer('Mails by one user, or from one network address without one.', 300, 0, 1_000_000),
    sms_of_sender: integer('Text messages by one user, or from one network address without one.', 60, 0, 1_000_000),
    sms_to_country: integer('Text messages to one country.', 1_000, 0, 100_000_000),
  }),
})
