import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { withoutCredentials } from '../../src/cli/support/without-credentials.ts'
import { configDifferences, ownValues } from '../../src/config/difference.ts'
import { loadConfig } from '../../src/config/load.ts'
import { holdsSecrets, OPTIONS, type OptionSchema } from '../../src/config/options.ts'
import { listSettings, printConfig, settingsYaml } from '../../src/config/render.ts'

const directory = mkdtempSync(join(tmpdir(), 'hearth-secrets-'))
afterAll(() => rmSync(directory, { recursive: true }))

let count = 0
/** Each another one, by which it is found whatever stands around it. */
const canary = (): string => `canary${String(++count).padStart(3, '0')}birdbirdbirdbirdbirdbird`

const SHAPED: Readonly<Record<string, (bird: string) => string>> = {
  'postgres-url': (bird) => `postgres://hearth:${bird}@db.test/hearth`,
  'proxy-url': (bird) => `http://hearth:${bird}@proxy.test:3128`,
  issuer: () => 'https://issuer.test',
}

/** A value that an option takes, with a canary wherever a secret may stand. */
function filled(schema: OptionSchema): unknown {
  const { type, items = {}, properties = {}, required = [], pattern, format, minimum } = schema
  if (type === 'array') return [filled({ ...items, hidden: schema.hidden ?? items.hidden ?? false })]
  if (type === 'object') {
    const wanted = Object.entries(properties).filter(([name, own]) => required.includes(name) || holdsSecrets(own))
    return Object.fromEntries(wanted.map(([name, own]) => [name, filled(own)]))
  }
  if (schema.enum !== undefined) return schema.enum[0]
  if (type === 'boolean') return true
  if (type === 'integer' || type === 'number') return minimum ?? 1
  const isSecret = schema.secret === true || schema.hidden === true
  const bird = isSecret ? canary() : 'plain'
  if (format !== undefined) return (SHAPED[format] ?? String)(bird)
  const found = [bird, `Authorization: Bearer ${bird}`, `https://sms.test/send?key=${bird}`].find(
    (text) => pattern === undefined || new RegExp(pattern).test(text),
  )
  if (found === undefined) throw new Error(`no text for ${pattern}`)
  return found
}

function valuesOf(schemas: readonly (readonly [string, OptionSchema])[]): object {
  const values: Record<string, unknown> = {}
  for (const [key, schema] of schemas) {
    const path = key.split('.')
    const section = path.slice(0, -1).reduce<Record<string, unknown>>((at, name) => {
      at[name] ??= {}
      return at[name] as Record<string, unknown>
    }, values)
    section[path.at(-1)!] = filled(schema)
  }
  return values
}

const keys = OPTIONS.filter(({ holds, schema }) => holds === undefined && holdsSecrets(schema))

test('no secret of any option that may hold one is printed, compared, or shown in the console and in the bundle for support', () => {
  expect(keys.map(({ key }) => key)).toEqual(
    expect.arrayContaining([
      ...['database.url', 'sso.providers', 'identity.sms.secret', 'backup.passphrase', 'outbound.proxy'],
      ...['identity.sms.http.url', 'identity.sms.http.headers', 'identity.sms.http.body'],
    ]),
  )
  // What contradicts each other is none of this test's: each option has a configuration of its own.
  for (const { key, schema } of keys) {
    const before = count
    const values = { server_name: 'canaries.test', ...valuesOf([[key, schema]]) }
    const loaded = loadWith(values)
    expect(count, `${key} has a canary`).toBeGreaterThan(before)
    expect(JSON.stringify(loaded.config), key).toContain('canary')
    const plain = loadConfig({ values: { server_name: 'canaries.test' }, directory })
    const shown = {
      print: printConfig(loaded),
      console: JSON.stringify(listSettings(loaded.config)),
      backup: settingsYaml(loaded, false),
      diff: JSON.stringify([configDifferences(plain.config, loaded.config), ownValues(loaded.config)]),
      bundle: withoutCredentials(JSON.stringify(loaded.config), loaded.config),
    }
    for (const [where, text] of Object.entries(shown)) {
      expect(text, `${key} in ${where}`).not.toContain('canary0')
      expect(text.length).toBeGreaterThan(0)
    }
    expect(shown.print).toContain(`${key}: `)
    expect(settingsYaml(loaded, true)).toContain('canary0')
  }
})

/** Loads values with what else the options among them need. */
function loadWith(values: object) {
  try {
    return loadConfig({ values, directory })
  } catch (error) {
    const needed = [...(error as Error).message.matchAll(/needs an? ([\w.]+)/g)].map(([, key]) => key!)
    const more = needed.map((key) => [key, OPTIONS.find((option) => option.key === key)!.schema] as const)
    return loadConfig({ values: merged(values, valuesOf(more)), directory })
  }
}

function merged(one: object, other: object): object {
  const result: Record<string, unknown> = { ...one }
  for (const [name, value] of Object.entries(other)) {
    const own = result[name]
    result[name] = typeof own === 'object' && own !== null && !Array.isArray(own) ? merged(own, value as object) : value
  }
  return result
}

test('what was not changed is shown, also of options in which a secret may stand', () => {
  const { config } = loadConfig({ values: { server_name: 'canaries.test' }, directory })
  expect(listSettings(config)).toContainEqual(
    expect.objectContaining({
      key: 'identity.sms.http.headers',
      value: '["Content-Type: application/json"]',
      isDefault: true,
    }),
  )
})

test('an address of a service has no user name and no password in it', () => {
  const load = (url: string) =>
    loadConfig({ values: { server_name: 'canaries.test', public_base_url: url }, directory }).config.public_base_url
  for (const url of ['https://a:b@c.test', 'https://:b@c.test', 'https://a@c.test'])
    expect(() => load(url)).toThrow('public_base_url')
  expect(load('https://c.test')).toBe('https://c.test')
})

test('short passwords in a header, an address or a body are hidden in the bundle for support, and the words around them are not', () => {
  const http = {
    url: 'https://sms.test/send?key=short1&pass=secret',
    headers: ['Content-Type: application/json', 'Authorization: Bearer s3cr3t', 'X-Api-Key: letmein'],
    body: '{"message": "{{text | json}}", "password": "hunter"}',
  }
  const { config } = loadConfig({ values: { server_name: 'canaries.test', identity: { sms: { http } } }, directory })
  const shown = withoutCredentials('short1 secret s3cr3t letmein hunter / Bearer message password', config)
  expect(shown).toBe('[hidden] [hidden] [hidden] [hidden] [hidden] / Bearer message password')
})
