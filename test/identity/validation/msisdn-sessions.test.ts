import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, test } from 'vitest'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { openApi, register } from '../../support/api.ts'
import { type FakeGateway, startGateway } from '../../support/sms-gateway.ts'
import { type Answer, type IdentityApi, openIdentity, P1, P2 } from '../identity-api.ts'

let gateway: FakeGateway
let directory: string
let token: string
let identity: IdentityApi
const undo: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-sms-'))
  undo.push(() => rm(directory, { recursive: true }))
  gateway.requests.length = 0
  gateway.answer = { status: 200, body: '{}' }
})
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

async function start(options: object): Promise<AccountServer> {
  const server = await startAccountServer({ identity: { outbox: join(directory, 'outbox'), ...options } })
  undo.push(() => server.close())
  identity = openIdentity(server.baseUrl)
  const api = openApi(server.baseUrl)
  const account = await register(api, 'alice')
  await api.close()
  const path = `/_proto/client/v3/user/${encodeURIComponent(account.userId)}/openid/request_token`
  const openId = await identity.ask('POST', path, { token: account.token, body: {} })
  token = (await identity.ask('POST', '/account/register', { body: openId.body })).body.token
  return server
}

const http = (change: object = {}) => ({
  sms: {
    gateway: 'http',
    http: { url: `${gateway.url}/send`, rejected: 'barred', ...change },
  },
})

const GOOD = { client_secret: 'secret', country: 'GB', phone_number: '07400 123456', send_attempt: 1 }
const request = (change: object = {}, root = P2) =>
  identity.ask('POST', `${root}/validate/msisdn/requestToken`, { token, body: { ...GOOD, ...change } })
const submit = (sid: string, code: string) =>
  identity.ask('POST', '/validate/msisdn/submitToken', { token, body: { sid, client_secret: 'secret', token: code } })
const codes = () => gateway.requests.map(({ body }) => /\b\d{6}\b/.exec(JSON.parse(body).text)?.[0] as string)
const outcome = ({ status, body }: Answer) => [status, body.errcode]

test('a number is validated by the code of a message', async () => {
  await start(http())
  const { status, body } = await request()
  expect(status).toBe(200)
  expect(body).toEqual({
    sid: expect.any(String),
    success: true,
    msisdn: '447400123456',
    intl_fmt: '+44 7400 123456',
  })
  expect(JSON.parse(gateway.requests[0]?.body ?? '')).toMatchObject({ to: '+447400123456', from: 'Hearth' })
  const [code = ''] = codes()
  expect(await submit(body.sid, `${code.slice(0, 3)} ${code.slice(3)}`)).toMatchObject({ body: { success: true } })
  const query = new URLSearchParams({ sid: body.sid, client_secret: 'secret' })
  expect(await identity.ask('GET', `/3pid/getValidated3pid?${query}`, { token })).toMatchObject({
    status: 200,
    body: { medium: 'msisdn', address: '447400123456', validated_at: expect.any(Number) },
  })
})

test('by GET it wants an access token where the seed says so, in header or query', async () => {
  await start(http())
  const { sid } = (await request()).body
  const query = new URLSearchParams({ sid, client_secret: 'secret', token: codes()[0] ?? '' })
  const path = `/validate/msisdn/submitToken?${query}`
  expect(outcome(await identity.ask('GET', path))).toEqual([401, 'M_UNAUTHORIZED'])
  expect((await identity.ask('GET', path, { token })).status).toBe(200)
  expect((await identity.ask('GET', `${path}&access_token=${token}`)).status).toBe(200)
  const published = await identity.ask('GET', `/_matrix/identity/v2${path}`)
  expect([published.status, published.body]).toEqual([200, expect.stringContaining('Your phone number is confirmed.')])
  expect((await identity.ask('GET', `${P1}${path}`)).status).toBe(200)
  const sent = { sid, client_secret: 'secret', token: codes()[0] }
  const posted = await identity.ask('POST', `${P1}/validate/msisdn/submitToken`, { body: sent })
  expect(posted).toMatchObject({ status: 200, body: { success: true } })
})

test('attempts are counted for country, number as written, and secret', async () => {
  await start(http())
  const sent = async (change: object) => {
    expect((await request(change)).status).toBe(200)
    return gateway.requests.length
  }
  expect(await sent({})).toBe(1)
  expect(await sent({})).toBe(1)
  expect(await sent({ country: 'gb' })).toBe(1)
  expect(await sent({ send_attempt: 2 })).toBe(2)
  expect(await sent({ country: 'US', phone_number: '+447400123456' })).toBe(3)
  expect(await sent({ client_secret: 'another' })).toBe(4)
})

test('five wrong codes end a session, and nobody gets many sessions for one number', async () => {
  await start({ ...http(), sessions: { messages_per_hour: { sms_to_address: 3 } } })
  const { sid } = (await request()).body
  const right = codes()[0] ?? ''
  const wrong = right === '000000' ? '000001' : '000000'
  for (let n = 0; n < 5; n++) expect(outcome(await submit(sid, wrong))).toEqual([400, 'M_TOKEN_INCORRECT'])
  expect(outcome(await submit(sid, right))).toEqual([400, 'M_SESSION_EXPIRED'])
  expect((await request({ client_secret: 'second' })).status).toBe(200)
  expect((await request({ client_secret: 'third', country: 'US', phone_number: '+44 7400 123456' })).status).toBe(200)
  const fourth = await request({ client_secret: 'fourth' })
  expect(outcome(fourth)).toEqual([429, 'M_LIMIT_EXCEEDED'])
  expect(fourth.body.retry_after_ms).toBeGreaterThan(60_000)
  expect(gateway.requests).toHaveLength(3)
})

test('limits are rows, which outlive the process, and end with time', async () => {
  const server = await start({ ...http(), sessions: { messages_per_hour: { sms_of_sender: 1 } } })
  expect((await request()).status).toBe(200)
  expect(outcome(await request({ phone_number: '07400 123457' }))).toEqual([429, 'M_LIMIT_EXCEEDED'])
  const rows = await server.db.query('SELECT FROM identity_send_limit')
  expect(rows.length).toBeGreaterThan(0)
  server.advance(3_600_000)
  expect((await request({ phone_number: '07400 123457' })).status).toBe(200)
})

test('a gateway that fails leaves the attempt uncounted; one that refuses the number says so', async () => {
  await start(http())
  gateway.answer = { status: 503, body: 'down' }
  expect(outcome(await request())).toEqual([400, 'M_SEND_ERROR'])
  gateway.answer = { status: 400, body: 'barred' }
  expect(outcome(await request())).toEqual([400, 'M_DESTINATION_REJECTED'])
  gateway.answer = { status: 200, body: '{}' }
  expect((await request()).status).toBe(200)
  expect(gateway.requests).toHaveLength(3)
})

test('countries that are not served are refused before anybody is asked', async () => {
  await start({ sms: { ...http().sms, allowed_countries: ['GB', 'US'], refused_countries: ['US'] } })
  const numbers = { GB: '07400 123456', US: '(201) 555-0123', FR: '06 12 34 56 78' }
  const answers: Record<string, unknown> = {}
  for (const [country, phone_number] of Object.entries(numbers)) {
    answers[country] = (await request({ country, phone_number })).body.errcode
  }
  expect(answers).toEqual({ GB: undefined, US: 'M_DESTINATION_REJECTED', FR: 'M_DESTINATION_REJECTED' })
  // The number decides, not the country it is dialled from.
  expect(outcome(await request({ phone_number: '+33612345678' }))).toEqual([400, 'M_DESTINATION_REJECTED'])
  expect(gateway.requests).toHaveLength(1)
})

test('what is no number or no country is refused, and nothing is sent', async () => {
  await start(http())
  expect(outcome(await request({ phone_number: 'call me' }))).toEqual([400, 'M_INVALID_ADDRESS'])
  expect(outcome(await request({ phone_number: '07400 123456\n' }))).toEqual([400, 'M_INVALID_ADDRESS'])
  expect(outcome(await request({ phone_number: 7400123456 }))).toEqual([400, 'M_INVALID_PARAM'])
  expect(outcome(await request({ country: 'XX' }))).toEqual([400, 'M_INVALID_PARAM'])
  expect(outcome(await request({ country: undefined }))).toEqual([400, 'M_MISSING_PARAMS'])
  expect(gateway.requests).toEqual([])
})

it('goes into a file where no gateway is configured', async () => {
  const server = await start({})
  const { sid } = (await request({}, P1)).body
  const [name = ''] = await readdir(join(directory, 'outbox'))
  const message = await readFile(join(directory, 'outbox', name), 'utf8')
  expect(message).toMatch(/^To: \+447400123456\n/)
  expect(server.logged()).toContain(name)
  expect(server.logged()).not.toContain('447400123456')
  expect(await submit(sid, /\b\d{6}\b/.exec(message)?.[0] ?? '')).toMatchObject({ status: 200 })
})

it('is refused where there are no text messages', async () => {
  await start({ sms: { gateway: 'none' } })
  expect(outcome(await request())).toEqual([400, 'M_DESTINATION_REJECTED'])
})

it.each([
  ['POST', '/validate/msisdn/requestToken', GOOD],
  ['POST', '/validate/msisdn/submitToken', { sid: 'a', client_secret: 'b', token: 'c' }],
  ['GET', '/validate/msisdn/submitToken?sid=a&client_secret=b&token=c', undefined],
  ['GET', '/3pid/getValidated3pid?sid=a&client_secret=b', undefined],
])('%s %s waits for the terms to be accepted', async (method, path, body) => {
  const languages = [{ language: 'en', name: 'Terms', url: 'https://example.org/terms' }]
  await start({ ...http(), terms: { policies: [{ id: 'terms', version: '1', languages }] } })
  const ask = () => identity.ask(method, path, { token, ...(body && { body }) })
  expect(outcome(await ask())).toEqual([403, 'M_TERMS_NOT_SIGNED'])
  expect(gateway.requests).toEqual([])
  await identity.ask('POST', '/terms', { token, body: { user_accepts: ['https://example.org/terms'] } })
  expect((await ask()).status).not.toBe(403)
})
