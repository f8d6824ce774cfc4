import { Type } from '../core/shapes.ts'
import { invitesSection, lookupSection } from './identity-lookup.ts'
import { mailSection, sessionsSection, smsSection } from './identity-messages.ts'
import { flag, integer, section, text } from './parts.ts'
import { termsSection } from './terms.ts'

export const identitySection = section('The identity service, which is served where `roles` has `identity`.', {
  base_url: Type.Optional(
    text('Where clients and homeservers reach it. Without it: `public_base_url`.', {
      format: 'http-url',
      example: 'https://identity.example.org',
    }),
  ),
  brand: Type.Optional(
    text("What the service calls itself in messages and on pages. Without it: the server's name.", {
      minLength: 1,
      example: 'Example Chat',
    }),
  ),
  v1_api: section('The first generation of the interface, which asks nobody for a token.', {
    enabled: flag('Whether it is served. Existing clients and mails may still need it.', true),
  }),
  tokens: section('Access tokens of the identity service.', {
    lifetime_hours: integer(
      'A token that was not used for this long stops working; 0: tokens do not age.',
      720,
      0,
      87_600,
    ),
  }),
  terms: termsSection(
    'Policies that users must accept before they may use the service.',
    'The policies, each in one or more languages. To accept one language is to accept the policy; a new version is to be accepted again.',
  ),
  lookup: lookupSection,
  invites: invitesSection,
  sessions: sessionsSection,
  mail: mailSection,
  sms: smsSection,
  outbox: Type.Optional(
    text('Directory for messages that no gateway takes. Without it: `outbox` in `data_dir`.', {
      path: true,
      minLength: 1,
      example: '/var/spool/hearth',
    }),
  ),
  templates_dir: Type.Optional(
    text(
      'Directory with templates of messages and pages, `<brand>/<language>/<name>`, that take the place of our own of the same names; `hearth identity preview-mail` and `preview-page` show what becomes of them.',
      { path: true, minLength: 1, example: '/etc/hearth/templates' },
    ),
  ),
})
