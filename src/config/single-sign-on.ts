import { Type } from '../core/shapes.ts'
import { section } from './parts.ts'

const template = (description: string) => Type.Optional(Type.String({ description, format: 'claims-template' }))

const provider = Type.Object(
  {
    id: Type.String({
      description: 'What this server calls it, in paths and in its accounts: never change it.',
      pattern: '^[A-Za-z0-9._~-]{1,255}$',
    }),
    name: Type.String({ description: 'What people read.', minLength: 1 }),
    issuer: Type.String({ description: 'Its issuer; the rest is discovered from there.', format: 'issuer' }),
    client_id: Type.String({ description: 'As which client it knows this server.', minLength: 1 }),
    client_secret: Type.Optional(Type.String({ description: "That client's secret.", secret: true, minLength: 1 })),
    scopes: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 50 })),
    brand: Type.Optional(
      Type.String({ description: 'A well-known brand, for its logo.', pattern: '^[a-z0-9._-]{1,255}$' }),
    ),
    icon: Type.Optional(Type.String({ description: 'An image for clients.', pattern: '^mxc://[^/\\s]+/[^/\\s]+$' })),
    localpart: template('The user name of a new account.'),
    display_name: template('The display name of a new account.'),
    email: template('The email address of a new account.'),
    allow_existing_users: Type.Optional(
      Type.Boolean({ description: 'Whether names lead to accounts that are there.' }),
    ),
    allow_registration: Type.Optional(Type.Boolean({ description: 'Whether new accounts are made.' })),
  },
  { additionalProperties: false },
)

const EXAMPLE = {
  id: 'example',
  name: 'Example Inc.',
  issuer: 'https://login.example.org/realms/main',
  client_id: 'hearth',
  client_secret: 'a-long-secret',
  scopes: ['openid', 'profile', 'email'],
  localpart: '{{preferred_username}}',
  display_name: '{{name}}',
  email: '{{email}}',
  allow_existing_users: false,
  allow_registration: true,
}

export const singleSignOnSection = section('Sign-in through other services that speak OpenID Connect.', {
  providers: Type.Array(provider, {
    description:
      'The services. Register `<public_base_url>/_hearth/sso/callback` as redirect address with each. `client_secret` may be given as `client_secret_file`. `localpart`, `display_name` and `email` are made of claims: `{{preferred_username}}`, `{{email | localpart}}` (what is before the `@`), `{{#name}}...{{/name}}` when there is one. An address counts only where the service calls it verified. With `allow_existing_users` whoever has a user name there takes over the account of that name here: only for services where nobody can choose a name of others. Without `allow_registration` only people who have an account already can sign in.',
    default: [],
    maxItems: 100,
    example: [EXAMPLE],
  }),
  trusted_clients: Type.Array(Type.String({ format: 'client-address' }), {
    description:
      'Addresses of clients that people are sent back to without being asked: scheme, host and the beginning of the path, such as `https://app.example.org/`. Everyone else is shown first where they are going.',
    default: [],
    maxItems: 1_000,
    example: ['https://app.example.org/', 'element://connect'],
  }),
})
