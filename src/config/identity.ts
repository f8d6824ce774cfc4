import { Type } from '../core/shapes.ts'
import { invitesSection, lookupSection } from './identity-lookup.ts'
import { mailSection, sessionsSection, smsSection } from './identity-messages.ts'
import { flag, integer, section, text } from './parts.ts'
import { termsSection } from './terms.ts'

export const identitySection = section('The identity service. It runs if `roles` contains `identity`.', {
  base_url: Type.Optional(
    text('The address at which clients and homeservers reach it. Without it: `public_base_url`.', {
      format: 'http-url',
      example: 'https://identity.example.org',
    }),
  ),
  brand: Type.Optional(
    text("The name of the service in messages and on pages. Without it: the server's name.", {
      minLength: 1,
      example: 'Example Chat',
    }),
  ),
  v1_api: section('Version 1 of the interface, which needs no token.', {
    enabled: flag('Whether it is served. Existing clients and mails may still need it.', true),
  }),
  tokens: section('Access tokens of the identity service.', {
    lifetime_hours: integer(
      'A token that was not used for this long stops working; 0: tokens do not expire.',
      720,
      0,
      87_600,
    ),
  }),
  terms: termsSection(
    'Policies that users must accept before they may use the service.',
    'The policies, each in one or more languages. A person who accepts one language accepts the policy; a new version must be accepted again.',
  ),
  lookup: lookupSection,
  invites: invitesSection,
  sessions: sessionsSection,
  mail: mailSection,
  sms: smsSection,
  outbox: Type.Optional(
    text('Directory for messages without a configured gateway. Without it: `outbox` in `data_dir`.', {
      path: true,
      minLength: 1,
      example: '/var/spool/hearth',
    }),
  ),
  templates_dir: Type.Optional(
    text(
      'Directory with templates of messages and pages, `<brand>/<language>/<name>`, that replace the built-in ones of the same names; `hearth identity preview-mail` and `preview-page` show the result.',
      { path: true, minLength: 1, example: '/etc/hearth/templates' },
    ),
  ),
})
