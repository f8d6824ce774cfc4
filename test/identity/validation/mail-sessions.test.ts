import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, test } from 'vitest'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type IdentityApi, openIdentity, P1 } from '../identity-api.ts'

let directory: string
let server: AccountServer
let identity: IdentityApi

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-mail-sessions-'))
})
afterEach(async () => {
  await server.close()
  await rm(directory, { recursive: true })
})

async function start(options: object = {}): Promise<void> {
  server = await startAccountServer({ identity: { outbox: join(directory, 'outbox'), ...options } })
  identity = openIdentity(server.baseUrl)
}

const GOOD = { client_secret: 'secret', email: 'alice@example.org', send_attempt: 1 }
const request = async (change: object = {}, query = '', headers = {}) => {
  const path = `${P1}/validate/email/requestToken${query}`
  const { status, body } = await identity.ask('POST', path, { body: { ...GOOD, ...change }, headers })
  return [status, body.errcode]
}

async function mails(): Promise<string[]> {
  const names = await readdir(join(directory, 'outbox')).catch(() => [])
  return Promise.all(names.sort().map((name) => readFile(join(directory, 'outbox', name), 'utf8')))
}

const subjects = async () => (await mails()).map((mail) => /^Subject: (.*)$/m.exec(mail)?.[1])

it('waits in a file where there is no mail server, and the log says where', async () => {
  await start()
  expect(await request()).toEqual([200, undefined])
  const [mail = ''] = await mails()
  expect(mail).toMatch(/^From: localhost <no-reply@localhost>$/m)
  expect(mail).toMatch(/^To: alice@example.org$/m)
  expect(server.logged()).toMatch(/a message waits in a file/)
  expect(server.logged()).not.toContain('alice@example.org')
})

test('brand and language choose the template, as far as they are known', async () => {
  const template = (subject: string) => `From: a@b.example\nSubject: ${subject}\n\n--- text\n{{link}}\n`
  for (const language of ['en', 'fr']) {
    await mkdir(join(directory, 'templates', 'acme', language), { recursive: true })
    await writeFile(join(directory, 'templates', 'acme', language, 'validate-email.mail'), template(`Acme ${language}`))
  }
  await start({ templates_dir: join(directory, 'templates') })
  const cases = [
    ['', {}],
    ['?brand=acme', {}],
    ['?brand=acme', { 'accept-language': 'fr-CA' }],
    ['?brand=acme&lang=en', { 'accept-language': 'fr' }],
    ['?brand=..%2Facme', { 'accept-language': '../fr' }],
  ] as const
  for (const [index, [query, headers]] of cases.entries()) {
    expect(await request({ send_attempt: index + 1 }, query, headers)).toEqual([200, undefined])
  }
  const usual = 'Confirm your email address'
  expect((await subjects()).sort()).toEqual(['Acme en', 'Acme en', 'Acme fr', usual, usual])
})

test('people are sent on to the hosts that are allowed', async () => {
  await start({ sessions: { next_link_hosts: ['app.example.org', 'localhost:8080'] } })
  const links = {
    'https://app.example.org/x': [200, undefined],
    'http://LOCALHOST:8080/': [200, undefined],
    'https://app.example.org:444/': [400, 'M_INVALID_PARAM'],
    'https://app.example.org.evil.example/': [400, 'M_INVALID_PARAM'],
    'https://evil.example/app.example.org': [400, 'M_INVALID_PARAM'],
  }
  for (const [index, [next_link, expected]] of Object.entries(links).entries()) {
    expect(await request({ next_link, send_attempt: index + 1 }), next_link).toEqual(expected)
  }
  expect(await mails()).toHaveLength(2)
})

test('nobody floods a mailbox: neither higher attempts nor other secrets nor other spellings help', async () => {
  await start({ sessions: { messages_per_hour: { mails_to_address: 3 } } })
  expect(await request()).toEqual([200, undefined])
  expect(await request({ send_attempt: 2 })).toEqual([200, undefined])
  expect(await request({ client_secret: 'another', email: 'ALICE@example.org' })).toEqual([200, undefined])
  expect(await request({ send_attempt: 100 })).toEqual([429, 'M_LIMIT_EXCEEDED'])
  expect(await request({ client_secret: 'third' })).toEqual([429, 'M_LIMIT_EXCEEDED'])
  // A repeated request sends nothing, and is answered as before.
  expect(await request({ send_attempt: 2 })).toEqual([200, undefined])
  expect(await request({ email: 'bob@example.org' })).toEqual([200, undefined])
  expect(await mails()).toHaveLength(4)
  server.advance(20 * 60_000)
  expect(await request({ send_attempt: 100 })).toEqual([200, undefined])
  expect(await request({ send_attempt: 101 })).toEqual([429, 'M_LIMIT_EXCEEDED'])
})

test('nobody without an account floods many', async () => {
  await start({ sessions: { messages_per_hour: { mails_of_sender: 5 } } })
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => request({ email: `user${n}@example.org` })))
  expect(answers.filter(([status]) => status === 200)).toHaveLength(5)
  expect(answers.filter(([status]) => status === 429)).toHaveLength(15)
  expect(await mails()).toHaveLength(5)
})
