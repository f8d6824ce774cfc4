import { Type } from '../core/shapes.ts'
import { section } from './parts.ts'

const template = (description: string) => Type.Optional(Type.String({ description, format: 'claims-template' }))

const provider = Type.Object(
  {
    id: Type.String({
      description: "This server's name for it, in paths and in accounts: never change it.",
      pattern: '^[A-Za-z0-9._~-]{1,255}$',
    }),
    name: Type.String({ description: 'What people read.', minLength: 1 }),
    issuer: Type.String({ description: 'Its issuer; the rest is discovered from there.', format: 'issuer' }),
    client_id: Type.String({ description: 'The client id of this server there.', minLength: 1 }),
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
      Type.Boolean({ description: 'Whether people may sign in to existing accounts by their user name there.' }),
    ),
    allow_registration: Type.Optional(Type.Boolean({ description: 'Whether new accounts may be created.' })),
    omits_auth_time: Type.Optional(
      Type.Boolean({ description: 'Whether it asks people again, and yet does not say when they signed in.' }),
    ),
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
  omits_auth_time: false,
}

export const singleSignOnSection = section('Sign-in through other services that speak OpenID Connect.', {
  providers: Type.Array(provider, {
    description:
      "The services. Register `<public_base_url>/_hearth/sso/callback` as redirect address with each. `client_secret` may be given as `client_secret_file`. `localpart`, `display_name` and `email` are templates over claims: `{{preferred_username}}`, `{{email | localpart}}` (the part before the `@`), `{{#name}}...{{/name}}` (only if the claim exists). An address counts only if the service calls it verified. With `allow_existing_users` a person takes over the account here that has their user name there: use it only for services where nobody can choose another person's name. Without `allow_registration` only people with an account can sign in. Before people delete their account, and the like, they have to sign in again, and the service must say when they did (`auth_time`, which OpenID Connect demands). Set `omits_auth_time` for one that leaves it out: whoever comes back from it then counts as having signed in again.",
    default: [],
    maxItems: 100,
    example: [EXAMPLE],
  }),
  trusted_clients: Type.Array(Type.String({ format: 'client-address' }), {
    description:
      'Addresses of clients to which people return without a question: scheme, host and the beginning of the path, such as `https://app.example.org/`. For other clients, people are shown the address first.',
    default: [],
    maxItems: 1_000,
    example: ['https://app.example.org/', 'element://connect'],
  }),
})
