import type { Problem } from './layers.ts'
import type { Config } from './schema.ts'

/** The given value of an option, and its place. */
export interface Given {
  readonly value: unknown
  readonly origin: string
}

type AllGiven = ReadonlyMap<string, Given>

/** Conflicts between options that are each valid. */
export function contradictions(given: AllGiven): Problem[] {
  return [
    ...needs(given, 'registration.require_token', (value) => value === true, ['registration.token']),
    ...needs(given, 'registration.captcha.vendor', (value) => value !== 'none', [
      'registration.captcha.site_key',
      'registration.captcha.secret',
    ]),
    ...needs(given, 'media.store', (value) => value === 's3', [
      'media.s3.endpoint',
      'media.s3.bucket',
      'media.s3.access_key_id',
      'media.s3.secret_access_key',
    ]),
    ...needs(given, 'identity.sms.gateway', (value) => value === 'twilio' || value === 'vonage', [
      'identity.sms.account',
      'identity.sms.secret',
    ]),
    ...needs(given, 'identity.sms.gateway', (value) => value === 'http', ['identity.sms.http.url']),
    ...needs(given, 'backup.every_hours', (value) => value !== 0, ['backup.place']),
    ...needs(given, 'backup.point_in_time', (value) => value === true, ['backup.place']),
    ...embeddedLog(given),
    ...needs(given, 'oauth.legacy_login', (value) => value === false, ['public_base_url']),
    ...needs(given, 'registration.max_users', (value) => value !== 0, ['well_known.support_email']),
    ...needs(given, 'rooms.policy_server.via', () => true, ['rooms.policy_server.public_key']),
    ...needs(given, 'https.certificate_file', () => true, ['https.key_file']),
    ...needs(given, 'https.key_file', () => true, ['https.certificate_file']),
    ...needs(given, 'cluster.secret', () => true, ['database.url']),
    ...needs(given, 'database.replicas', (value) => (value as readonly string[]).length > 0, ['database.url']),
    ...needs(given, 'calls.turn.user', () => true, ['calls.turn.password']),
    ...needs(given, 'calls.livekit.url', () => true, ['calls.livekit.api_key', 'calls.livekit.api_secret']),
    ...needs(given, 'ldap.bind_dn', () => true, ['ldap.bind_password']),
    ...turnCredentials(given),
    ...repeatedPolicies(given, 'identity.terms.policies'),
    ...repeatedPolicies(given, 'registration.terms.policies'),
    ...repeatedProviders(given),
  ]
}

/** The log of a Postgres that is not ours is not ours to take. */
function embeddedLog(given: AllGiven): Problem[] {
  const option = given.get('backup.point_in_time')
  if (option?.value !== true) return []
  if (given.has('database.url'))
    return [
      { origin: option.origin, message: 'backup.point_in_time is for the embedded Postgres, not for database.url' },
    ]
  const minutes = given.get('backup.journal_minutes')
  return minutes?.value === 0
    ? [{ origin: minutes.origin, message: 'backup.point_in_time needs a backup.journal_minutes' }]
    : []
}

function needs(
  given: AllGiven,
  key: string,
  applies: (value: unknown) => boolean,
  needed: readonly string[],
): Problem[] {
  const option = given.get(key)
  if (option === undefined || !applies(option.value)) return []
  return needed
    .filter((each) => (given.get(each)?.value ?? '') === '')
    .map((each) => ({ origin: option.origin, message: `${key} needs a ${each}` }))
}

/** TURN servers take credentials of one kind. STUN servers take none. */
function turnCredentials(given: AllGiven): Problem[] {
  const { value = [], origin = '' } = given.get('calls.turn.uris') ?? {}
  if (!(value as readonly string[]).some((uri) => uri.startsWith('turn'))) return []
  const kinds = ['calls.turn.shared_secret', 'calls.turn.user'].filter((key) => (given.get(key)?.value ?? '') !== '')
  if (kinds.length === 1) return []
  const message = 'calls.turn.uris needs either calls.turn.shared_secret, or calls.turn.user and calls.turn.password'
  return [{ origin, message: kinds.length === 0 ? message : `${message}, not both` }]
}

function repeatedPolicies(given: AllGiven, key: string): Problem[] {
  const { value = [], origin = '' } = given.get(key) ?? {}
  const policies = value as Config['identity']['terms']['policies']
  const names = policies.flatMap(({ id, languages }) => [
    id,
    ...languages.map(({ language }) => `${id} in ${language}`),
  ])
  const twice = new Set(names.filter((name, index) => names.indexOf(name) !== index))
  return [...twice].map((name) => ({ origin, message: `${key}: ${name} is there twice` }))
}

function repeatedProviders(given: AllGiven): Problem[] {
  const key = 'sso.providers'
  const { value = [], origin = '' } = given.get(key) ?? {}
  const ids = (value as Config['sso']['providers']).map(({ id }) => id)
  const twice = new Set(ids.filter((id, index) => ids.indexOf(id) !== index))
  return [...twice].map((id) => ({ origin, message: `${key}: ${id} is there twice` }))
}
