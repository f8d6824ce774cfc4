import { RE2JS } from 're2js'
import { describe, expect, it, test } from 'vitest'
import { compileExpression, needsEngine } from '../../../src/core/appservice/expression.ts'
import { indexNamespaces } from '../../../src/core/appservice/namespace-index.ts'
import { conflictsOf, readRegistration } from '../../../src/core/appservice/registration.ts'
import { cpuMs } from '../../support/slowness.ts'

const GOOD = {
  id: 'irc',
  url: 'http://localhost:9999/irc/',
  as_token: 'a',
  hs_token: 'h',
  sender_localpart: '_irc_bot',
  namespaces: { users: [{ exclusive: true, regex: '@_irc_.*' }] },
}

const read = (value: unknown) =>
  readRegistration('irc.yaml', typeof value === 'string' ? value : JSON.stringify(value), RE2JS)
const problemsOf = (value: unknown) => read(value).problems.map(({ origin, message }) => `${origin}: ${message}`)

describe('the table "Application service registration"', () => {
  test('all fields that are required', () => {
    expect(read(GOOD).registration).toMatchObject({
      ...GOOD,
      url: 'http://localhost:9999/irc',
      namespaces: { users: [{ exclusive: true, regex: '@_irc_.*' }], aliases: [], rooms: [] },
      rate_limited: false,
      protocols: [],
      receive_ephemeral: false,
      receive_device_data: false,
    })
  })

  test.each(Object.keys(GOOD))('%s is required', (key) => {
    const { [key as keyof typeof GOOD]: _, ...rest } = GOOD
    expect(problemsOf(rest)).toEqual([`irc.yaml:1: the key '${key}' is missing`])
  })

  test('url may be null when no traffic is needed', () => {
    expect(read({ ...GOOD, url: null }).registration?.url).toBeNull()
    expect(
      read('id: a\nurl:\nas_token: b\nhs_token: c\nsender_localpart: d\nnamespaces: {}').registration?.url,
    ).toBeNull()
  })

  test.each([
    ['id', 7, { id: '7' }],
    ['rate_limited', true, { rate_limited: true }],
    ['protocols', ['irc', 'xmpp'], { protocols: ['irc', 'xmpp'] }],
    ['receive_ephemeral', true, { receive_ephemeral: true }],
    ['push_ephemeral', true, { receive_ephemeral: true }],
    ['de.sorunome.msc2409.push_ephemeral', true, { receive_ephemeral: true }],
    ['org.matrix.msc3202', true, { receive_device_data: true }],
    ['an_unknown_key', { of: 'theirs' }, { id: 'irc' }],
  ])('%s: %j is read', (key, value, expected) => {
    expect(read({ ...GOOD, [key]: value }).registration).toMatchObject(expected)
  })
})

describe('a mistake names its file and line', () => {
  const FILE = `id: irc
url: localhost:9999
as_token: ""
hs_token: [1]
sender_localpart: "@bot:here"
rate_limited: perhaps
protocols: irc
namespaces:
  users:
    - regex: '@_irc_.*'
    - exclusive: true
      regex: '@(?!x)'
    - exclusive: true
      regex: '@(.{1,1000}){1,1000}'
  aliases: '#_irc_.*'
  rooms:
    - true
`
  test('all of them at once', () => {
    const lines = problemsOf(FILE).map((problem) => Number(/^irc\.yaml:(\d+): /.exec(problem)?.[1]))
    expect(lines.sort((a, b) => a - b)).toEqual([2, 3, 4, 5, 6, 7, 10, 11, 13, 15, 17])
  })

  test.each(['receive_ephemeral', 'de.sorunome.msc2409.push_ephemeral', 'org.matrix.msc3202', 'rate_limited'])(
    '%s is true or false',
    (key) => {
      expect(problemsOf({ ...GOOD, [key]: 'perhaps' })).toEqual([`irc.yaml:1: '${key}' must be true or false`])
    },
  )

  test('what is no YAML', () => {
    expect(problemsOf('id: irc\nurl: "http://\n')[0]).toMatch(/^irc\.yaml:[23]: /)
    expect(problemsOf('just a text')).toEqual([expect.stringMatching(/^irc\.yaml:1: a registration holds keys/)])
    expect(problemsOf('')).toHaveLength(1)
  })

  test('a look-ahead, which needs more than linear time', () => {
    expect(problemsOf(FILE).find((problem) => problem.startsWith('irc.yaml:11'))).toContain('"@(?!x)" cannot be used')
  })

  test.each(['id', 'as_token'])('two services with the same %s', (key) => {
    const first = { path: 'a.yaml', registration: read(GOOD).registration! }
    const other = { ...GOOD, id: 'other', as_token: 'o', [key]: GOOD[key as 'id'] }
    const second = { path: 'b.yaml', registration: read(other).registration! }
    expect(conflictsOf([first, second])).toEqual([
      { origin: 'b.yaml:1', message: `its ${key} is also that of a.yaml: each service has one of its own` },
    ])
  })
})

describe('namespaces', () => {
  const MATCHES: readonly [string, string, boolean][] = [
    ['@_irc_.*', '@_irc_bob:hs', true],
    ['@_irc_.*', 'x@_irc_bob:hs', false],
    ['@_irc_bob', '@_irc_bobby:hs', true],
    ['@_irc_bob$', '@_irc_bob:hs', false],
    ['^@bob:hs$', '@bob:hs', true],
    ['@irc_.*:example\\.org', '@irc_a:example.org', true],
    ['@irc_.*:example\\.org', '@irc_a:exampleXorg', false],
    ['@irc_.*:example\\.org$', '@irc_a:example.org.evil', false],
    ['@irc_.*_x$', '@irc_x', false],
    ['@(irc|slack)_.+', '@slack_a', true],
    ['@irc_.*|@slack_.*', '@slack_a', true],
    ['@a[|]b', '@a|b', true],
    ['@[[:digit:]]+:hs', '@42:hs', true],
    ['@[]a]x', '@]x', true],
    ['@ab?c', '@ac', true],
    ['@_x\\d', '@_x7', true],
    ['.*', '@anybody:hs', true],
    ['', '@anybody:hs', true],
  ]
  test.each(MATCHES)('%s on %s: %s', (regex, id, expected) => {
    const expression = compileExpression(regex, RE2JS)
    expect(expression.matches(id)).toBe(expected)
    expect(RE2JS.compile(regex).matcher(id).lookingAt()).toBe(expected)
    expect(indexNamespaces([{ expression, value: 1 }]).find(id)).toEqual(expected ? [1] : [])
  })

  it('needs no engine for what most bridges write', () => {
    for (const regex of ['@_irc_.*', '^@wa_.*:hs\\.org$', '#irc_', '@bot:hs$']) expect(needsEngine(regex)).toBe(false)
    expect(needsEngine('@wa_[0-9]+:hs')).toBe(true)
  })

  it('takes linear time for an expression that would never end elsewhere', () => {
    const expression = compileExpression('@(a+)+$', RE2JS)
    const took = cpuMs(() => expect(expression.matches(`@${'a'.repeat(20_000)}!`)).toBe(false))
    expect(took).toBeLessThan(2_000)
  })

  it('asks 10,000 of them about a message in under a millisecond', () => {
    const texts = Array.from({ length: 10_000 }, (_, n) =>
      n % 10 === 0 ? `@_b${n}_[a-z0-9]+:hs` : n % 10 === 1 ? `@_b${n}_.*:hs\\.org$` : `@_b${n}_.*`,
    )
    const index = indexNamespaces(texts.map((text, value) => ({ expression: compileExpression(text, RE2JS), value })))
    const ids = Array.from({ length: 500 }, (_, n) => `@_b${n * 20}_user${n}:hs.org`)
    for (const id of ids) expect(index.find(id)).toHaveLength(1)
    // The best of some rounds: others use this machine too.
    const rounds = Array.from({ length: 5 }, () => {
      const start = performance.now()
      for (const id of ids) index.find(id)
      return (performance.now() - start) / ids.length
    })
    expect(Math.min(...rounds)).toBeLessThan(1)
  })
})
