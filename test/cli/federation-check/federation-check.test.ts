import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import type { Host } from '../../../src/cli/command.ts'
import type { Section } from '../../../src/cli/doctor/finding.ts'
import { federationCommand } from '../../../src/cli/federation.ts'
import { checkServer } from '../../../src/cli/federation-check/check-server.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/schema.ts'
import { encodeBase64 } from '../../../src/core/base64.ts'
import type { ServerName } from '../../../src/core/ids.ts'
import { signJson } from '../../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { type Outside, openOutside } from '../../support/outside.ts'
import { openStranger, type Stranger } from '../../support/stranger.ts'
import { json, startTlsServer, type TlsHandler, type TlsServer } from '../../support/tls-server.ts'

const FAR = 'far.test' as ServerName
const HOUR_MS = 3_600_000
const key = signingKeyFromSeed('ed25519:far', Buffer.alloc(32, 7))

const briefly = (sections: readonly Section[]) =>
  Object.fromEntries(sections.flatMap(({ findings }) => findings.map((each) => [each.subject, each.verdict])))
const textOf = (sections: readonly Section[], subject: string) => {
  const finding = sections.flatMap(({ findings }) => findings).find((each) => each.subject === subject)
  return `${finding?.verdict}: ${finding?.text} ${finding?.advice ?? ''}`
}

describe('the way to another server, and what is wrong on it', () => {
  let outside: Outside
  let far: TlsServer
  let routes: Map<string, number>
  let config: Config
  /** What it answers, by the end of the path. */
  let answers: Record<string, TlsHandler>

  beforeAll(async () => {
    outside = await openOutside()
    far = await startTlsServer(outside.authority.issue([FAR, 'hs.far.test'], 60), (request, response) => {
      const handler = Object.entries(answers).find(([end]) => request.url.split('?')[0]!.endsWith(end))?.[1]
      ;(handler ?? json({ errcode: 'M_UNRECOGNIZED', error: 'unknown' }, 404))(request, response)
    })
  })
  afterAll(async () => {
    await far.close()
    await outside.close()
  })
  beforeEach(() => {
    outside.dns.zones.clear()
    for (const host of [FAR, 'hs.far.test']) outside.dns.zones.set(host, { addresses: ['127.0.0.1'] })
    routes = new Map(['far.test:443', 'far.test:8448', 'hs.far.test:8448'].map((place) => [place, far.port]))
    answers = {
      '/federation/v1/version': json({ server: { name: 'Far\u001b[31m', version: '1.2' } }),
      '/key/v2/server': (request, response) => json(keys())(request, response),
      '/query/profile': json({ errcode: 'M_NOT_FOUND', error: 'nobody' }, 404),
    }
    configure({})
  })

  const keys = (changes: object = {}) =>
    signJson(
      {
        server_name: FAR,
        valid_until_ts: Date.now() + 24 * HOUR_MS,
        verify_keys: { [key.keyId]: { key: key.publicKey } },
        old_verify_keys: { 'ed25519:old': { key: key.publicKey, expired_ts: 1 } },
        ...changes,
      },
      FAR,
      key,
    )
  const configure = (values: object) => {
    const outbound = { allow_ranges: ['127.0.0.1'] }
    config = loadConfig({ values: { server_name: 'near.test', outbound, ...values }, directory: tmpdir() }).config
  }
  const check = (server: string = FAR, signingKey = key) =>
    checkServer(server as ServerName, {
      ...{ config, client: outside.leading(routes), names: outside.names, now: Date.now, signingKey },
    })

  it('is told step by step where all is well', async () => {
    const sections = await check()
    expect(sections.map(({ title }) => title)).toEqual([
      'Whether they may',
      'Where the name leads',
      'What is there',
      'Its keys',
      'Whether it believes us',
    ])
    expect(new Set(Object.values(briefly(sections)))).toEqual(new Set(['ok']))
    expect(textOf(sections, 'discovery')).toContain('no SRV record for far.test: port 8448')
    expect(textOf(sections, 'version')).toContain('Far[31m 1.2, by /_matrix')
    expect(textOf(sections, 'certificate')).toContain('good for 59 more days, by An authority for tests')
    expect(textOf(sections, 'keys')).toContain('ed25519:far, and 1 out of use; signed by far.test')
    expect(textOf(sections, 'validity')).toContain('good for 24 more hours')
    expect(textOf(sections, 'signature')).toContain('it believes our signature (404: M_NOT_FOUND, nobody)')
  })

  it('goes by well-known and SRV records', async () => {
    answers['/.well-known/matrix/server'] = json({ 'm.server': 'hs.far.test' })
    outside.dns.zones.set('_matrix-fed._tcp.hs.far.test', { services: [{ port: 8448, name: 'hs.far.test' }] })
    const sections = await check()
    expect(textOf(sections, 'well-known')).toContain('/.well-known/matrix/server says hs.far.test')
    expect(textOf(sections, 'discovery')).toContain('SRV _matrix-fed._tcp.hs.far.test: hs.far.test:8448')
    expect(textOf(sections, 'hs.far.test:8448')).toContain('speaks TLS as hs.far.test')
    answers['/.well-known/matrix/server'] = json({ 'm.server': 'https://hs.far.test/' })
    expect(textOf(await check(), 'well-known')).toMatch(/^warning: .*makes no sense/)
  })

  it('of a server that speaks the other dialect', async () => {
    answers = { ...answers, '/_matrix/federation/v1/version': json({ errcode: 'M_UNRECOGNIZED' }, 404) }
    answers = Object.fromEntries(Object.entries(answers).reverse())
    expect(textOf(await check(), 'version')).toContain('by /_proto')
  })

  it.each<[string, () => void, string, RegExp]>([
    ['no address', () => outside.dns.zones.delete(FAR), FAR, /^problem: has no address in DNS see whether the name/],
    [
      'an address that is not called',
      () => outside.dns.zones.set(FAR, { addresses: ['10.1.2.3'] }),
      FAR,
      /^problem: 10\.1\.2\.3 is not on the public internet.*outbound\.allow_ranges/,
    ],
    [
      'nobody there',
      () => routes.set('far.test:8448', 1),
      'far.test:8448',
      /^problem: .*ECONNREFUSED.*nothing listens/,
    ],
    [
      'the certificate of another name',
      () => {
        outside.dns.zones.set('_matrix-fed._tcp.far.test', { services: [{ port: 8448, name: 'hs.far.test' }] })
        answers['/.well-known/matrix/server'] = json({ 'm.server': 'other.test' })
        outside.dns.zones.set('other.test', { addresses: ['127.0.0.1'] })
        routes.set('other.test:8448', far.port)
      },
      'other.test:8448',
      /^problem: its certificate or TLS is not good.*get a certificate for other\.test/,
    ],
    [
      'SRV records that say there is no service',
      () => outside.dns.zones.set('_matrix-fed._tcp.far.test', { services: [{ port: 443, name: '.' }] }),
      'discovery',
      /^problem: .*no service its operator has to correct that record/,
    ],
    ['a web server', () => (answers = {}), 'version', /^problem: answers 404 .*something else than a homeserver/],
    [
      'another homeserver',
      () => (answers['/key/v2/server'] = json(keys({ server_name: 'else.test' }))),
      'keys',
      /^problem: what is there calls itself else\.test, and not far\.test/,
    ],
    [
      'keys that somebody changed',
      () => (answers['/key/v2/server'] = json({ ...keys(), valid_until_ts: 9e12 })),
      'keys',
      /^problem: are not signed by a key among them/,
    ],
    [
      'keys that have run out',
      () => (answers['/key/v2/server'] = json(keys({ valid_until_ts: 1_000 }))),
      'validity',
      /^problem: the keys have run out, at 1970-/,
    ],
    [
      'a server that does not find us',
      () => (answers['/query/profile'] = json({ errcode: 'M_UNAUTHORIZED', error: 'no key' }, 401)),
      'signature',
      /^problem: it does not believe our signature \(401: M_UNAUTHORIZED, no key\).*"doctor" shows how others find near\.test/,
    ],
    [
      'a server that shuts us out',
      () => (answers['/query/profile'] = json({ errcode: 'M_FORBIDDEN', error: 'not you' }, 403)),
      'signature',
      /^warning: it answers 403: M_FORBIDDEN, not you/,
    ],
    [
      'a rule of our own',
      () => configure({ federation: { deny: ['*.test'] } }),
      'federation',
      /^problem: .*federation\.deny names it/,
    ],
  ])('says what is wrong: %s', async (_what, break_, subject, expected) => {
    break_()
    expect(textOf(await check(), subject)).toMatch(expected)
  })
})

describe('hearth federation check', () => {
  let street: Neighbourhood
  let far: Neighbour
  let near: Stranger
  let directory: string
  const seed = Buffer.alloc(32, 9)
  const printed: string[] = []
  const host = () =>
    ({
      env: {},
      directory,
      uid: 0,
      isTerminal: false,
      version: '1',
      print: (text: string) => printed.push(text),
    }) as unknown as Host

  beforeAll(async () => {
    street = openNeighbourhood()
    far = await street.open()
    near = await openStranger(street.authority, () => signingKeyFromSeed('ed25519:near', seed))
    directory = await mkdtemp(join(tmpdir(), 'hearth-check-'))
    const config = {
      ...{ server_name: near.name, data_dir: directory },
      outbound: { allow_ranges: ['127.0.0.0/8'], ca_file: street.authority.file },
    }
    await writeFile(join(directory, 'hearth.yaml'), JSON.stringify(config))
  })
  afterAll(async () => {
    await near.close()
    await street.close()
    await rm(directory, { recursive: true })
  })
  const run = async (...words: string[]) => {
    printed.length = 0
    return federationCommand.run(host(), words)
  }

  test('goes to a real server and back: it asks us for our keys', async () => {
    expect(await run('check', far.name)).toBe(0)
    expect(printed.join()).toContain('there is no signing key')
    const line = `ed25519 near ${encodeBase64(seed)}\n`
    await writeFile(join(directory, 'signing.key'), line, { mode: 0o600 })
    expect(await run('check', far.name, '--json')).toBe(0)
    expect(JSON.parse(printed.join())).toMatchObject({ server_name: far.name, ok: true, problems: 0 })
    expect(near.front.requests.map(({ url }) => url)).toEqual(['/_matrix/key/v2/server'])
    expect(await run('check', far.name)).toBe(0)
    expect(printed.join()).toMatch(/✓ signature +it believes our signature \(404: M_NOT_FOUND/)
    near.front.handler = json({}, 503)
  })

  test('ends with 1 where something is wrong, and knows a wrong use', async () => {
    expect(await run('check', 'localhost:1')).toBe(1)
    expect(printed.join()).toMatch(/✗ localhost:1 .*ECONNREFUSED/)
    expect(await run('check', near.name)).toBe(0)
    expect(printed.join()).toContain('is this server itself')
    await expect(run('check', '@alice:far.test')).rejects.toThrow(/"@alice:far\.test" is no server name/)
    await expect(run('check')).rejects.toThrow(/say "check SERVER"/)
  })
})
