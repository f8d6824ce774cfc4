import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { examineSms } from '../../src/cli/doctor/sms.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createGuardedClient } from '../../src/outbound/http.ts'
import { createNames } from '../../src/outbound/names.ts'
import { runProgramHere } from '../support/run-hearth.ts'
import { startGateway } from '../support/sms-gateway.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-check-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

async function check(yaml: string) {
  await writeFile(join(directory, 'hearth.yaml'), yaml)
  return runProgramHere(['config', 'check'], { directory, env: {} })
}

const POLICY = `policies:
      - {id: privacy, version: "1", languages: [{language: en, name: Privacy}]}`

/** What would end a start, with the key that has to be named and the line it stands in. */
const WRONG: readonly [what: string, yaml: string, place: string, message: string][] = [
  [
    'a templates_dir that is not there',
    'identity:\n  templates_dir: nowhere\n',
    'hearth.yaml:2',
    'identity.templates_dir: there is no directory',
  ],
  ['an authority that is not there', 'outbound:\n  ca_file: no.pem\n', 'hearth.yaml:2', 'outbound.ca_file: '],
  [
    'an authority of the mail server that is none',
    'identity:\n  mail:\n    smtp:\n      host: mail.example.org\n      ca_file: hearth.yaml\n',
    'hearth.yaml:5',
    'identity.mail.smtp.ca_file: ',
  ],
  [
    'a certificate that is not there',
    'https:\n  certificate_file: a.pem\n  key_file: b.pem\n',
    'hearth.yaml:2',
    'https.certificate_file: ',
  ],
  [
    'a policy of registration without its text',
    `registration:\n  terms:\n    ${POLICY}\n`,
    'hearth.yaml:3',
    'registration.terms.policies: privacy 1 in "en" has no url',
  ],
  [
    'a policy of the identity service without its text',
    `identity:\n  terms:\n    ${POLICY}\n`,
    'hearth.yaml:3',
    'identity.terms.policies: privacy 1 in "en" has no url',
  ],
  [
    'a gateway without its address',
    'identity:\n  sms:\n    gateway: http\n',
    'hearth.yaml:3',
    'identity.sms.gateway needs a identity.sms.http.url',
  ],
  [
    'a gateway without its secret',
    'identity:\n  sms:\n    gateway: twilio\n    account: AC1\n',
    'hearth.yaml:3',
    'identity.sms.gateway needs a identity.sms.secret',
  ],
  [
    'a gateway whose body makes no sense',
    'identity:\n  sms:\n    gateway: http\n    http:\n      url: https://sms.example.org\n      body: "{{nobody}}"\n',
    'hearth.yaml:5',
    'identity.sms.http: ',
  ],
  [
    'a registration file that is not there',
    'application_services:\n  registrations: [no.yaml]\n',
    'hearth.yaml:2',
    'application_services.registrations',
  ],
]

test.each(WRONG)('D1: config check finds %s: exit 78, key and line named', async (_what, yaml, place, message) => {
  const { code, stderr } = await check(yaml)
  expect(stderr).toContain(place)
  expect(stderr).toContain(message)
  expect(code).toBe(78)
})

test('D1: config check finds templates that make no sense, by file and line', async () => {
  const folder = join(directory, 'mine/default/en')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'validate-msisdn.txt'), '{{nobody}}\n')
  const { code, stderr } = await check('identity:\n  templates_dir: mine\n')
  expect([code, stderr]).toEqual([78, expect.stringContaining(join(folder, 'validate-msisdn.txt:1'))])
  expect(stderr).toContain('identity.templates_dir')
})

test('D1: config check tells all problems at once, each one time', async () => {
  const yaml = `outbound:\n  ca_file: no.pem\nidentity:\n  templates_dir: nowhere\nregistration:\n  terms:\n    ${POLICY}\n`
  const { code, stderr } = await check(yaml)
  expect(code).toBe(78)
  for (const key of ['outbound.ca_file', 'identity.templates_dir', 'registration.terms.policies']) {
    expect(stderr.split('\n').filter((line) => line.includes(key))).toHaveLength(1)
  }
})

test('D1: a value that is too short is told how long it has to be', async () => {
  const { code, stderr } = await check('registration:\n  shared_secret: short\n')
  expect([code, stderr]).toEqual([
    78,
    expect.stringContaining('registration.shared_secret: expected text of at least 16 characters'),
  ])
})

test('D1: quoted booleans are accepted', async () => {
  const yaml = 'registration:\n  enabled: "true"\n  require_token: \'false\'\nmetrics:\n  enabled: "false"\n'
  expect(await check(yaml)).toMatchObject({ code: 0 })
  const { config } = loadConfig({ file: { path: join(directory, 'hearth.yaml'), text: yaml }, directory })
  expect([config.registration.enabled, config.registration.require_token, config.metrics.enabled]).toEqual([
    true,
    false,
    false,
  ])
  expect((await check('metrics:\n  enabled: "yes"\n')).stderr).toContain('metrics.enabled: expected true or false')
})

test('D1: a good configuration with all of these is good', async () => {
  await mkdir(join(directory, 'policies'))
  await writeFile(join(directory, 'policies/privacy-1-en.txt'), 'We keep nothing.\n')
  await mkdir(join(directory, 'templates'))
  const yaml = `identity:\n  templates_dir: templates\n  terms:\n    directory: policies\n    ${POLICY}\n`
  expect(await check(yaml)).toMatchObject({ code: 0 })
})

test('D1: doctor looks at SMS: a gateway that answers, one that does not, and none', async () => {
  const gateway = await startGateway()
  const look = async (sms: object) => {
    const { config } = loadConfig({
      values: { identity: { sms }, outbound: { allow_ranges: ['127.0.0.0/8'] } },
      directory,
    })
    const names = createNames()
    const client = await createGuardedClient({
      config,
      log: pino({ level: 'silent' }),
      names,
      userAgent: 'Hearth/test',
    })
    try {
      return await examineSms({ config, client, names, now: Date.now })
    } finally {
      await client.close()
    }
  }
  expect(await look({ gateway: 'http', http: { url: `${gateway.url}/send` } })).toMatchObject({ verdict: 'ok' })
  expect(gateway.requests.filter(({ url }) => url.startsWith('/send'))).toEqual([])
  await gateway.close()
  const gone = await look({ gateway: 'http', http: { url: `${gateway.url}/send` } })
  expect(gone).toMatchObject({ verdict: 'problem', text: expect.stringContaining('cannot be asked') })
  expect(await look({ gateway: 'outbox' })).toMatchObject({ verdict: 'warning' })
  expect(await look({ gateway: 'none' })).toMatchObject({ verdict: 'ok' })
})
