import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { createGuardedClient, type GuardedClient } from '../../src/outbound/http.ts'
import { createSmsGateway, SMS_PRESETS, SmsError, type SmsProtocol } from '../../src/outbound/sms.ts'
import { type FakeGateway, startGateway } from '../support/sms-gateway.ts'

let gateway: FakeGateway
let client: GuardedClient
beforeAll(async () => {
  gateway = await startGateway()
  const outbound = { allow_ranges: ['127.0.0.0/8'], dialect: 'auto', key_servers: [], no_proxy: [] } as const
  client = await createGuardedClient({ config: { outbound }, log: pino({ level: 'silent' }) })
})
afterAll(() => Promise.all([gateway.close(), client.close()]))
beforeEach(() => {
  gateway.requests.length = 0
  gateway.answer = { status: 200, body: '{}' }
})

const ACCOUNT = { account: 'AC/1', secret: 's"ecret', sender: '+15550100', timeout_ms: 1_000 }
const MESSAGE = { to: '447400123456', text: 'Ihr Code: "123456" & mehr\n' }

/** The protocol, spoken to the gateway of this test. */
const here = (protocol: SmsProtocol) =>
  createSmsGateway({ ...protocol, url: protocol.url.replace(/^https:\/\/[^/]+/, gateway.url) }, ACCOUNT, client)

async function isRejected(send: Promise<void>): Promise<boolean> {
  const error = await send.then(
    () => expect.unreachable('it was sent'),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(SmsError)
  return (error as SmsError).isRejected
}

describe('Twilio', () => {
  test('gets a form and a login', async () => {
    gateway.answer = { status: 201, body: '{"sid":"SM1","status":"queued"}' }
    await here(SMS_PRESETS.twilio).send(MESSAGE)
    const [request] = gateway.requests
    expect(request).toMatchObject({ method: 'POST', url: '/2010-04-01/Accounts/AC%2F1/Messages.json' })
    expect(request?.headers.authorization).toBe(`Basic ${Buffer.from('AC/1:s"ecret').toString('base64')}`)
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
      To: '+447400123456',
      From: '+15550100',
      Body: MESSAGE.text,
    })
  })

  it.each([
    [400, 21408, true],
    [400, 21211, true],
    [400, 21610, true],
    [400, 21601, false],
    [401, 20003, false],
    [429, 20429, false],
    [500, 20500, false],
  ])('answers %i with code %i: never to this number is %s', async (status, code, rejected) => {
    gateway.answer = { status, body: JSON.stringify({ code, message: 'no', status }) }
    expect(await isRejected(here(SMS_PRESETS.twilio).send(MESSAGE))).toBe(rejected)
  })
})

describe('Vonage', () => {
  test('gets JSON', async () => {
    gateway.answer = { status: 200, body: '{"message-count":"1","messages":[{"status":"0"}]}' }
    await here(SMS_PRESETS.vonage).send(MESSAGE)
    const [request] = gateway.requests
    expect(request).toMatchObject({ method: 'POST', url: '/sms/json' })
    expect(JSON.parse(request?.body ?? '')).toEqual({
      api_key: 'AC/1',
      api_secret: 's"ecret',
      to: '447400123456',
      from: '+15550100',
      text: MESSAGE.text,
      type: 'unicode',
    })
  })

  it.each([
    ['7', true],
    ['29', true],
    ['1', false],
    ['4', false],
  ])('answers status %s: never to this number is %s', async (status, rejected) => {
    gateway.answer = { status: 200, body: JSON.stringify({ messages: [{ status, 'error-text': 'no' }] }) }
    expect(await isRejected(here(SMS_PRESETS.vonage).send(MESSAGE))).toBe(rejected)
  })
})

describe('a gateway of your own', () => {
  const own = (change: Partial<SmsProtocol> = {}): SmsProtocol => ({
    url: `${gateway.url}/send?to={{to}}&text={{text}}`,
    method: 'GET',
    headers: ['X-Key: {{secret}}'],
    body: '',
    accepted: '',
    rejected: '',
    ...change,
  })

  test('is asked as it is described, each value escaped for its place', async () => {
    await createSmsGateway(own(), { ...ACCOUNT, secret: 'a\r\nX-Evil: 1' }, client).send(MESSAGE)
    const [request] = gateway.requests
    expect(request?.headers['x-key']).toBe('a X-Evil: 1')
    expect(request?.headers['x-evil']).toBeUndefined()
    expect(Object.fromEntries(new URL(`http://x${request?.url}`).searchParams)).toEqual(MESSAGE)
    await createSmsGateway(own({ method: 'PUT', body: '{"t":"{{text | json}}"}' }), ACCOUNT, client).send(MESSAGE)
    expect(JSON.parse(gateway.requests[1]?.body ?? '')).toEqual({ t: MESSAGE.text })
  })

  test('says yes by status or by a pattern, and never by another', async () => {
    gateway.answer = { status: 500, body: 'OK' }
    expect(await isRejected(createSmsGateway(own(), ACCOUNT, client).send(MESSAGE))).toBe(false)
    gateway.answer = { status: 200, body: 'ERR 12' }
    expect(await isRejected(createSmsGateway(own({ accepted: '^OK' }), ACCOUNT, client).send(MESSAGE))).toBe(false)
    expect(await isRejected(createSmsGateway(own({ rejected: '^ERR 12$' }), ACCOUNT, client).send(MESSAGE))).toBe(true)
    gateway.answer = { status: 200, body: 'OK 1' }
    await createSmsGateway(own({ accepted: '^OK', rejected: '^ERR' }), ACCOUNT, client).send(MESSAGE)
  })

  it.each([
    ['never answers', undefined],
    ['sends us elsewhere', { status: 302, body: '', headers: { location: '/elsewhere' } }],
    ['answers without end', { status: 200, body: 'x'.repeat(100_000) }],
  ])('that %s has failed', async (_name, answer) => {
    gateway.answer = answer
    expect(await isRejected(createSmsGateway(own(), { ...ACCOUNT, timeout_ms: 200 }, client).send(MESSAGE))).toBe(false)
    expect(gateway.requests).toHaveLength(1)
  })

  test('that is not there has failed', async () => {
    const gone = await startGateway()
    await gone.close()
    expect(await isRejected(createSmsGateway(own({ url: gone.url }), ACCOUNT, client).send(MESSAGE))).toBe(false)
  })

  test('that makes no sense is told at the start', () => {
    expect(() => createSmsGateway(own({ body: '{{tot}}' }), ACCOUNT, client)).toThrow(/there is no "tot"/)
  })
})
