import { Type } from '../core/shapes.ts'
import { invitesSection, lookupSection } from './identity-lookup.ts'
import { mailSection, sessionsSection, smsSection } from './identity-messages.ts'
import { flag, integer, section, text } from './parts.ts'

/** Names that may stand in a path as they are. */
const NAME = '^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$'

const policy = Type.Object(
  {
    id: Type.String({ pattern: NAME }),
    version: Type.String({ pattern: NAME }),
    languages: Type.Array(
      Type.Object(
        {
          language: Type.String({ pattern: '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$' }),
          name: Type.String({ minLength: 1 }),
          url: Type.Optional(Type.String({ pattern: '^https?://[^\\s]+$' })),
        },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: 100 },
    ),
  },
  { additionalProperties: false },
)

const POLICY_EXAMPLE = {
  id: 'privacy_policy',
  version: '1.2',
  languages: [{ language: 'en', name: 'Privacy Policy', url: 'https://example.org/privacy-1.2-en.html' }],
}

export const identitySection = section('The identity service.', {
  enabled: flag('Whether it is served, where `roles` has `identity`.', true),
  base_url: Type.Optional(
    text('Where clients and homeservers reach it. Without it: `public_base_url`.', {
      format: 'http-url',
      example: 'https://identity.example.org',
    }),
  ),
  brand: text('What the service calls itself in messages and on pages.', { default: 'Hearth', minLength: 1 }),
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
  terms: section('Policies that users must accept before they may use the service.', {
    directory: text(
      'Texts of the policies that have no `url`: `<id>-<version>-<language>.txt`, with paragraphs between empty lines, headings after `#` and lists after `-`.',
      { default: 'policies', path: true, minLength: 1 },
    ),
    policies: Type.Array(policy, {
      description:
        'The policies, each in one or more languages. To accept one language is to accept the policy; a new version is to be accepted again.',
      default: [],
      maxItems: 100,
      example: [POLICY_EXAMPLE],
    }),
  }),
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
      'Directory with templates of messages, `<brand>/<language>/<name>`, that take the place of our own of the same names; `hearth identity preview-mail` shows what becomes of them.',
      { path: true, minLength: 1, example: '/etc/hearth/templates' },
    ),
  ),
})
