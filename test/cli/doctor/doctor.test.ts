import { createSocket } from 'node:dgram'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { examineClock } from '../../../src/cli/doctor/clock.ts'
import { examineDatabase } from '../../../src/cli/doctor/database.ts'
import type { Finding, Section, Verdict } from '../../../src/cli/doctor/finding.ts'
import { examineMail } from '../../../src/cli/doctor/mail.ts'
import { proxySettings } from '../../../src/cli/doctor/proxy-settings.ts'
import { printReport } from '../../../src/cli/doctor/report.ts'
import { examineSetup } from '../../../src/cli/doctor/setup.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/schema.ts'
import { createTestDatabase } from '../../support/database.ts'
import { runHearth } from '../../support/run-hearth.ts'
import { startSmtp } from '../../support/smtp.ts'

const SETTINGS = {
  server_name: 'site.test',
  public_base_url: 'https://hs.test',
  trusted_proxies: ['127.0.0.1'],
  well_known: { server: 'hs.test:443' },
}

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-doctor-'))
})
afterAll(() => rm(directory, { recursive: true }))

const configOf = (values: object): Config =>
  loadConfig({ values: { data_dir: join(directory, 'data'), ...values }, directory }).config

const inWords = (findings: readonly Finding[]) =>
  Object.fromEntries(findings.map(({ subject, verdict }) => [subject, verdict]))
const found = (sections: readonly Section[], subject: string) =>
  sections.flatMap(({ findings }) => findings).find((finding) => finding.subject === subject)

describe('the machine', () => {
  test('that only tries things out', async () => {
    expect(inWords(await examineSetup(configOf({}), '24.14.1'))).toMatchObject({
      server_name: 'warning',
      public_base_url: 'ok',
      registration: 'ok',
      'Node.js': 'ok',
      data_dir: 'ok',
      'signing key': 'ok',
    })
  })

  it.each<[string, object, string, Verdict]>([
    ['without public_base_url', { server_name: 'site.test' }, 'public_base_url', 'problem'],
    ['without TLS', { server_name: 'site.test', public_base_url: 'http://hs.test' }, 'public_base_url', 'problem'],
    ['with both', SETTINGS, 'public_base_url', 'ok'],
    [
      'of identities alone',
      { ...SETTINGS, roles: ['identity'], identity: { base_url: 'http://id.test' } },
      'identity.base_url',
      'problem',
    ],
    ['open to all', { ...SETTINGS, registration: { enabled: true } }, 'registration', 'warning'],
    [
      'open by token',
      { ...SETTINGS, registration: { enabled: true, require_token: true, token: 'x' } },
      'registration',
      'ok',
    ],
  ])('%s', async (_what, values, subject, verdict) => {
    expect(inWords(await examineSetup(configOf(values), '24.14.1'))[subject]).toBe(verdict)
  })

  test('on an old Node.js, or with a key that others can read', async () => {
    const data_dir = join(directory, 'open')
    await runHearth(['keys', 'show', '--set', `data_dir=${data_dir}`], { directory })
    await writeFile(join(data_dir, 'signing.key'), 'x')
    await chmod(join(data_dir, 'signing.key'), 0o644)
    const findings = await examineSetup(configOf({ data_dir }), '20.20.2')
    expect(inWords(findings)).toMatchObject({ 'Node.js': 'warning', 'signing key': 'problem' })
  })

  test.each(['20.20.1', '21.9.0', '22.22.1', '24.9.0', '25.8.1'])(
    'on Node.js %s, which can be stopped from afar (75)',
    async (version) => {
      expect(inWords(await examineSetup(configOf(SETTINGS), version))['Node.js']).toBe('problem')
    },
  )
})

describe('the clock', () => {
  /** A time server that is ahead of us. */
  async function startTimeServer(aheadMs: number) {
    const socket = createSocket('udp4')
    socket.on('message', (_packet, { port, address }) => {
      const answer = Buffer.alloc(48)
      const seconds = (Date.now() + aheadMs) / 1000 + 2_208_988_800
      answer.writeUInt32BE(Math.floor(seconds), 40)
      answer.writeUInt32BE(Math.floor((seconds % 1) * 2 ** 32), 44)
      socket.send(answer, port, address)
    })
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
    return { name: `localhost:${(socket.address() as AddressInfo).port}`, close: () => socket.close() }
  }
  const names = {
    addressesOf: async () => [{ address: '127.0.0.1', family: 4 }],
    servicesOf: async () => undefined,
  }

  it.each<[number, Verdict, string]>([
    [0, 'ok', '0.0 s'],
    [10_000, 'warning', '10.0 s behind'],
    [-120_000, 'problem', '120.0 s ahead of'],
  ])('a time server that is %i ms ahead: %s', async (aheadMs, verdict, text) => {
    const server = await startTimeServer(aheadMs)
    const finding = await examineClock(names, server.name, Date.now)
    expect([finding.verdict, finding.text]).toEqual([verdict, expect.stringContaining(text)])
    server.close()
  })

  test('a time server that does not answer', async () => {
    const server = await startTimeServer(0)
    server.close()
    expect((await examineClock(names, server.name, Date.now)).verdict).toBe('warning')
  })
})

describe('the database', () => {
  test('as it should be, and as it should not', async () => {
    const database = await createTestDatabase()
    const { url } = database
    const examine = async (values: object = {}) =>
      inWords(await examineDatabase(configOf({ database: { url }, ...values }), Date.now))
    await database.db.query("INSERT INTO server_name (name) VALUES ('site.test')")
    const before = await database.db.query('SELECT count(*) FROM pg_stat_user_tables')
    expect(await examine({ server_name: 'site.test' })).toMatchObject({
      Postgres: 'ok',
      contents: 'ok',
      encoding: 'ok',
      connections: 'ok',
      'its clock': 'ok',
    })
    expect(await examine({ server_name: 'other.test' })).toMatchObject({ contents: 'problem' })
    expect(await database.db.query('SELECT count(*) FROM pg_stat_user_tables')).toEqual(before)
    const name = database.connection.database
    await database.db.query(`ALTER DATABASE ${name} SET synchronous_commit = off`)
    const { durability } = await examine()
    // The Postgres of the tests may run without fsync altogether.
    expect(['warning', 'problem']).toContain(durability)
    await database.drop()
  })

  test('that cannot store every message', async () => {
    const database = await createTestDatabase()
    const other = `ascii_${database.connection.database}`
    await database.db.scan(
      `CREATE DATABASE ${other} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`,
    )
    const url = database.url.replace(database.connection.database, other)
    expect(inWords(await examineDatabase(configOf({ database: { url } }), Date.now))).toMatchObject({
      encoding: 'problem',
    })
    await database.db.scan(`DROP DATABASE ${other} WITH (FORCE)`)
    await database.drop()
  })

  test('that is away, or not made yet', async () => {
    const [away] = await examineDatabase(configOf({ database: { url: 'postgres://x@127.0.0.1:1/x' } }), Date.now)
    expect(away).toMatchObject({ subject: 'Postgres', verdict: 'problem' })
    const [none] = await examineDatabase(configOf({ data_dir: join(directory, 'nothing') }), Date.now)
    expect(none).toMatchObject({ subject: 'Postgres', verdict: 'skipped' })
  })
})

describe('the mail server', () => {
  const smtpAt = (port: number, values: object = {}) =>
    examineMail(configOf({ identity: { mail: { smtp: { host: '127.0.0.1', port, security: 'none', ...values } } } }))

  test('lets us in, or does not', async () => {
    const smtp = await startSmtp({
      authOptional: false,
      allowInsecureAuth: true,
      onAuth: ({ password }, _session, done) =>
        password === 'right' ? done(null, { user: 'u' }) : done(new Error('no')),
    })
    const login = { user: 'us', password: 'right' }
    expect(await smtpAt(smtp.port, login)).toMatchObject({ verdict: 'ok', text: expect.stringContaining('lets us in') })
    expect(await smtpAt(smtp.port, { ...login, password: 'wrong' })).toMatchObject({ verdict: 'problem' })
    expect(await smtpAt(smtp.port, { ...login, security: 'tls' })).toMatchObject({ verdict: 'problem' })
    expect(smtp.mails).toEqual([])
    await smtp.close()
    expect(await smtpAt(smtp.port)).toMatchObject({ verdict: 'problem' })
  })

  test('is not configured', async () => {
    expect(await examineMail(configOf({}))).toMatchObject({ verdict: 'warning' })
  })
})

describe('the report', () => {
  const SECTIONS: readonly Section[] = [
    {
      title: 'Names',
      findings: [
        { verdict: 'ok', subject: 'site.test', text: '1.2.3.4' },
        { verdict: 'problem', subject: 'hs.test', text: 'has no address', advice: 'add an A record' },
        { verdict: 'warning', subject: 'a', text: 'b '.repeat(60), advice: 'c' },
        { verdict: 'skipped', subject: 'd', text: 'e' },
      ],
    },
  ]

  test('is lines for people, in colours on a terminal alone', () => {
    const plain = printReport('Title', SECTIONS, false)
    expect(plain).toContain('    ✗ hs.test             has no address\n                          → add an A record')
    expect(plain).toContain('1 fine, 1 warning, 1 problem')
    expect(plain).not.toContain('\u001b')
    expect(Math.max(...plain.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100)
    expect(printReport('Title', SECTIONS, true)).toContain('\u001b[31m✗\u001b[0m hs.test')
  })
})

describe('hearth doctor', () => {
  const doctor = (...words: string[]) => runHearth(['doctor', ...words, '--time-server', '127.0.0.1:1'], { directory })

  test('is content with a machine for trying out', async () => {
    const { code, stdout } = await doctor()
    expect(stdout).toContain('looked at localhost')
    expect([code, stdout]).toEqual([0, expect.stringContaining('0 problems')])
  })

  test('ends with 1 where there is a problem, and says it to programs too', async () => {
    const { code, stdout } = await doctor('--json', '--set', 'database.url=postgres://x@127.0.0.1:1/x')
    expect(code).toBe(1)
    const report = JSON.parse(stdout)
    expect(report).toMatchObject({ server_name: 'localhost', ok: false, problems: 1 })
    expect(found(report.sections, 'Postgres')).toMatchObject({ verdict: 'problem', advice: expect.any(String) })
  })

  test('--outside leaves out what only this machine shows', async () => {
    const { code, stdout } = await doctor('--outside', '--set', 'database.url=postgres://x@127.0.0.1:1/x')
    expect(code).toBe(0)
    expect(stdout).not.toContain('Postgres')
  })

  test('--proxy with another name is a wrong use', async () => {
    const { code, stderr } = await doctor('--proxy', 'squid')
    expect([code, stderr]).toEqual([2, expect.stringContaining('nginx, caddy, traefik')])
  })
})

describe('what to put into a proxy', () => {
  it.each(['nginx', 'caddy', 'traefik'])('%s', (name) => {
    const text = proxySettings(name, configOf({ ...SETTINGS, listen: { host: '0.0.0.0', port: 8123 } }))
    for (const part of ['hs.test', 'site.test', '127.0.0.1:8123', 'well-known', '_synapse']) {
      expect(text, part).toContain(part)
    }
    expect(text).toContain('server: hs.test:443')
    if (name === 'nginx') expect(text).toMatch(/proxy_read_timeout 180s;.*\n +client_max_body_size 1048576;/)
    const alone = proxySettings(name, configOf({ ...SETTINGS, public_base_url: 'https://site.test' }))
    expect(alone).not.toContain('hs.test')
  })
})
