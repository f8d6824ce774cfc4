import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ConfigError, type ConfigSources, loadConfig } from '../../src/config/load.ts'
import { OPTIONS } from '../../src/config/options.ts'
import { printConfig } from '../../src/config/render.ts'

const directory = mkdtempSync(join(tmpdir(), 'hearth-config-'))
afterAll(() => rmSync(directory, { recursive: true }))

function load(text: string, more: Partial<ConfigSources> = {}) {
  return loadConfig({ file: { path: '/etc/hearth/hearth.yaml', text }, directory: '/srv', ...more })
}

function problems(text: string, more: Partial<ConfigSources> = {}): string {
  try {
    load(text, more)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  throw new Error('the configuration was accepted')
}

/** Options that are nothing without others. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  'cluster.secret': ['database.url=postgres://localhost/hearth'],
  'https.certificate_file': ['https.key_file=k'],
  'https.key_file': ['https.certificate_file=c'],
  'calls.livekit.url': ['calls.livekit.api_key=k', `calls.livekit.api_secret=${'s'.repeat(32)}`],
  'calls.turn.user': ['calls.turn.password=p'],
  'ldap.bind_dn': ['ldap.bind_password=p'],
  'rooms.policy_server.via': [`rooms.policy_server.public_key=${'a'.repeat(43)}`],
}

describe('with nothing given', () => {
  const { config, origins } = loadConfig({ directory: '/srv' })

  test('the server can start on loopback', () => {
    expect(config).toMatchObject({ server_name: 'localhost', listen: { host: '127.0.0.1', port: 8008 } })
    expect(config.data_dir).toBe('/srv/data')
    expect(config.database).not.toHaveProperty('url')
    expect(origins.get('listen.port')).toBe('default')
  })

  test('it cannot be changed afterwards', () => {
    expect(() => Object.assign(config.listen, { port: 1 })).toThrow(TypeError)
    expect(() => Object.assign(config.trusted_proxies, ['10.0.0.1'])).toThrow(TypeError)
  })

  test('every option has a default that its own check accepts, or none and an example that it accepts', () => {
    for (const { key, schema, holds } of OPTIONS) {
      if (holds !== undefined) continue
      const [section, ...rest] = key.split('.').reverse()
      const values = rest.reduce<object>((inner, name) => ({ [name]: inner }), {
        [section!]: schema.default ?? schema.example,
      })
      const flags = NEEDED[key] ?? []
      expect(() => loadConfig({ values, flags, directory: '/srv' }), key).not.toThrow()
    }
  })
})

describe('layers', () => {
  test('file, environment, flag: the later one wins, and is named', () => {
    const text = 'listen:\n  port: 1\n  host: 127.0.0.2\nlog:\n  level: warn\n'
    const env = { HEARTH__LISTEN__PORT: '2', HEARTH__LOG__LEVEL: 'error' }
    const { config, origins } = load(text, { env, flags: ['log.level=debug'] })
    expect([config.listen.host, config.listen.port, config.log.level]).toEqual(['127.0.0.2', 2, 'debug'])
    expect(['listen.host', 'listen.port', 'log.level'].map((key) => origins.get(key))).toEqual([
      '/etc/hearth/hearth.yaml:3',
      'HEARTH__LISTEN__PORT',
      '--set log.level',
    ])
  })

  test('the environment gives every type', () => {
    const env = {
      HEARTH__TRUSTED_PROXIES: '10.0.0.0/8, ::1',
      HEARTH__REGISTRATION__ENABLED: 'false',
      HEARTH__RATE_LIMITS__MESSAGE__PER_SECOND: '0.5',
      HEARTH__ROOMS__DEFAULT_VERSION: '11',
      HEARTH__PUBLIC_BASE_URL: '',
      HEARTH_CONFIG: 'not an option',
      PATH: '/bin',
    }
    const { config } = loadConfig({ env, directory: '/srv' })
    expect(config.trusted_proxies).toEqual(['10.0.0.0/8', '::1'])
    expect(config.registration.enabled).toBe(false)
    expect(config.rate_limits.message.per_second).toBe(0.5)
    expect(config.rooms.default_version).toBe('11')
    expect(config).not.toHaveProperty('public_base_url')
  })

  test('a relative path starts from the file that names it', () => {
    expect(load('data_dir: here').config.data_dir).toBe('/etc/hearth/here')
    expect(load('', { env: { HEARTH__DATA_DIR: 'here' } }).config.data_dir).toBe('/srv/here')
  })

  test('text is taken as written, also when YAML sees a number', () => {
    expect(load('rooms: {default_version: 12}').config.rooms.default_version).toBe('12')
    expect(load('server_name: 1.10').config.server_name).toBe('1.10')
  })

  test('empty sections and empty values are as if not there', () => {
    expect(load('listen:\nlog:\n  level:\n').config).toEqual(load('').config)
  })
})

describe('secrets', () => {
  const file = join(directory, 'token')
  writeFileSync(file, 'from-a-file\n')

  test('are read from files, without the final line break', () => {
    expect(load(`registration:\n  token_file: ${file}`).config.registration.token).toBe('from-a-file')
    const env = { HEARTH__REGISTRATION__TOKEN_FILE: file }
    expect(load('registration:\n  token: in-the-file', { env }).config.registration.token).toBe('from-a-file')
  })

  test('stand in one place within a layer', () => {
    const text = `registration:\n  token: a\n  token_file: ${file}`
    expect(problems(text)).toBe(
      '/etc/hearth/hearth.yaml:3: give either registration.token or registration.token_file, not both',
    )
  })

  test('are not shown when they are wrong', () => {
    const message = problems('database:\n  url: hunter2')
    // Decoding would throw in the middle of a call.
    expect(problems('outbound:\n  proxy: http://me:100%@proxy.example.org:3128')).toContain('outbound.proxy')
    expect(message).toMatch(/hearth\.yaml:2: database\.url: expected a connection string/)
    expect(message).not.toContain('hunter2')
  })

  test('in a file that is not there stop the start', () => {
    expect(problems('database:\n  url_file: nowhere')).toMatch(
      /hearth\.yaml:2: \/etc\/hearth\/nowhere cannot be read: ENOENT/,
    )
  })
})

describe('what is wrong is named with line, expectation and the nearest key', () => {
  test.each([
    ['server_nam: x', '1: unknown key "server_nam"; did you mean "server_name"?'],
    ['\n\nlisten:\n  prot: 1', '4: unknown key "listen.prot"; did you mean "listen.port"?'],
    ['port: 8008', '1: unknown key "port"; did you mean "listen.port"?'],
    ['metrics:\n  bind_address: x', '2: unknown key "metrics.bind_address"'],
    ['listen:\n  port: many', '2: listen.port: expected a whole number from 0 to 65535, found "many"'],
    ['listen:\n  port: 65536', '2: listen.port: expected a whole number from 0 to 65535, found 65536'],
    ['listen:\n  port: 80.5', '2: listen.port: expected a whole number from 0 to 65535, found 80.5'],
    ['registration:\n  enabled: yes', '2: registration.enabled: expected one of auto, true, false, found "yes"'],
    ['trusted_proxies: 10.0.0.1', '1: trusted_proxies: expected a list, each item an IP address or range'],
    ['trusted_proxies:\n  - 10.0.0.0/33', '1: trusted_proxies: expected a list, each item an IP address or range'],
    ['server_name: "not a name"', '1: server_name: expected a host name or address with an optional port'],
    ['public_base_url: matrix.example.org', '1: public_base_url: expected an address such as https://'],
    ['listen: 8008', '1: listen holds keys with values, one per line'],
    ['- a list', '1: the file holds keys with values, one per line'],
    ['listen:\n  port: 1\n  port: 2', '3: Map keys must be unique'],
    ['registration:\n  require_token: true', '2: registration.require_token needs a registration.token'],
  ])('%j', (text, expected) => {
    expect(problems(text)).toContain(`/etc/hearth/hearth.yaml:${expected}`)
  })

  test('everything at once, environment and flags too', () => {
    const env = { HEARTH__LISTEN__POTR: '1', HEARTH__LISTEN__PORT: 'x' }
    const lines = problems('nonsense: 1', { env, flags: ['listen.prt=1', 'listen.port'] }).split('\n')
    expect(lines).toEqual([
      '/etc/hearth/hearth.yaml:1: unknown key "nonsense"',
      'HEARTH__LISTEN__POTR: unknown variable; did you mean "HEARTH__LISTEN__PORT"?',
      'HEARTH__LISTEN__PORT: listen.port: expected a whole number from 0 to 65535, found "x"',
      '--set listen.prt: unknown key "listen.prt"; did you mean "listen.port"?',
      '--set listen.port: expected key=value',
    ])
  })
})

describe('providers of single sign-on', () => {
  const PROVIDER = { id: 'a', name: 'A', issuer: 'https://a.test', client_id: 'x' }
  const withProvider = (more: object) => {
    const values = { sso: { providers: [{ ...PROVIDER, ...more }] } }
    return loadConfig({ values, directory })
  }

  test('may have their secrets in files, and show them to nobody', () => {
    writeFileSync(join(directory, 'sso-secret'), 'canary-secret\n')
    const loaded = withProvider({ client_secret_file: 'sso-secret' })
    expect(loaded.config.sso.providers).toEqual([{ ...PROVIDER, client_secret: 'canary-secret' }])
    const printed = printConfig(loaded)
    expect(printed).toContain('"client_id":"x"')
    expect(printed).not.toContain('canary-secret')
  })

  test.each<[string, object, RegExp]>([
    [
      'a secret that is there twice',
      { client_secret: 'canary', client_secret_file: 'sso-secret' },
      /either client_secret or/,
    ],
    ['a secret in no file', { client_secret_file: 'missing' }, /missing cannot be read/],
    ['an issuer without TLS', { issuer: 'http://a.test', client_secret: 'canary' }, /expected a list/],
    ['an issuer that looks like loopback', { issuer: 'http://127.0.0.1.evil.test' }, /expected a list/],
    ['a template that is none', { localpart: '{{#name}}' }, /expected a list/],
    ['an id that no path can hold', { id: 'a/b' }, /expected a list/],
    ['an unknown key', { colour: 'red' }, /expected a list/],
  ])('cannot have %s', (_name, more, message) => {
    expect(() => withProvider(more)).toThrow(message)
    expect(() => withProvider(more)).not.toThrow('canary')
  })

  test('are there once each', () => {
    const values = { sso: { providers: [PROVIDER, PROVIDER] } }
    expect(() => loadConfig({ values, directory })).toThrow('sso.providers: a is there twice')
  })

  test.each(['http://127.0.0.1:8080', 'http://localhost/realm', 'http://[::1]:1'])(
    'may run on this machine: %s',
    (issuer) => {
      expect(withProvider({ issuer }).config.sso.providers[0]?.issuer).toBe(issuer)
    },
  )

  test.each(['javascript:alert(1)', 'app.example.org', 'https://a@b.test'])('trust no client at %s', (address) => {
    expect(() => loadConfig({ values: { sso: { trusted_clients: [address] } }, directory })).toThrow(
      'sso.trusted_clients',
    )
  })
})
