import { Type } from '../core/shapes.ts'
import { choice, flag, section, text } from './parts.ts'

const existing = flag(
  'Whether people may sign in to existing accounts by their user name there. Switch it on only where nobody can choose the name of another.',
  false,
)
const registration = flag('Whether an account is made for people who have none.', true)

export const ldapSection = section(
  'Passwords that an LDAP directory knows. A password that does not fit an account here is tried there.',
  {
    url: Type.Optional(
      text('The address of the directory. Without it none is asked.', {
        pattern: '^ldaps?://[^/\\s]+$',
        example: 'ldaps://ldap.example.org',
      }),
    ),
    start_tls: flag('Whether an `ldap:` connection goes over to TLS before anything is said.', false),
    ca_file: Type.Optional(
      text('Certificates in PEM that vouch for the directory, beside those of the system.', {
        path: true,
        minLength: 1,
        example: '/etc/ssl/certs/example.pem',
      }),
    ),
    base_dn: text('Where the people are.', { default: '', example: 'ou=people,dc=example,dc=org' }),
    user_attribute: text('The attribute that holds the user name.', {
      default: 'uid',
      pattern: '^[A-Za-z][A-Za-z0-9-]*$',
    }),
    bind_dn: Type.Optional(
      text(
        'Who looks people up below `base_dn`. Without it people are expected there directly: `uid=<user name>,<base_dn>`.',
        { minLength: 1, example: 'cn=hearth,dc=example,dc=org' },
      ),
    ),
    bind_password: Type.Optional(
      text('The password of `bind_dn`.', { secret: true, minLength: 1, example: 'a-secret' }),
    ),
    filter: Type.Optional(
      text('What people must satisfy beside their name, with `bind_dn`.', {
        pattern: '^\\(.*\\)$',
        example: '(memberOf=cn=matrix,ou=groups,dc=example,dc=org)',
      }),
    ),
    name_attribute: text('The attribute with the display name of a new account.', { default: 'cn' }),
    mail_attribute: text('The attribute with the email address of a new account.', { default: 'mail' }),
    allow_existing_users: existing,
    allow_registration: registration,
  },
)

export const jwtSection = section(
  'Signing in by a JSON Web Token of a service of yours (`org.matrix.login.jwt`). Whoever can make such a token can sign in as anybody whom it names.',
  {
    secret: Type.Optional(
      text('The shared secret, or the public key in PEM. Without it there is no such login.', {
        secret: true,
        minLength: 16,
        example: 'a-random-sentence-of-32-characters',
      }),
    ),
    algorithm: choice(
      'How tokens are signed. No other way is accepted.',
      ['HS256', 'HS384', 'HS512', 'RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'EdDSA'],
      'HS256',
    ),
    issuer: Type.Optional(text('The issuer (`iss`) that a token must have.', { minLength: 1, example: 'example.org' })),
    audiences: Type.Array(Type.String({ minLength: 1 }), {
      description: 'Audiences (`aud`), of which a token must have one; empty: it is not looked at.',
      default: [],
      maxItems: 100,
      example: ['matrix.example.org'],
    }),
    max_age_seconds: Type.Optional(
      Type.Integer({
        description:
          'How old a token may be. It must then say when it was made (`iat`). Without this option, a token must say until when it is good (`exp`).',
        minimum: 1,
        maximum: 31_536_000,
        example: 300,
      }),
    ),
    subject_claim: text('The claim with the user name.', { default: 'sub', minLength: 1 }),
    display_name_claim: Type.Optional(
      text('The claim with the display name of a new account.', { minLength: 1, example: 'name' }),
    ),
    portal_url: Type.Optional(
      text(
        "Where people get such a token in a browser. The page to sign in leads there, with the page that they wanted as `next`. From there a form sends `token` and `next` (POST) to `/_hearth/account/token`: then they are on this server's pages, and apps can use OAuth. Deleting an account and the like needs a token that says when it was made (`iat`), at most ten minutes ago.",
        { format: 'http-url', example: 'https://portal.example.org/chat' },
      ),
    ),
    portal_name: text('How the page to sign in calls that place.', { default: 'single sign-on', minLength: 1 }),
    allow_existing_users: existing,
    allow_registration: registration,
  },
)
