import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FakeGateway, startGateway } from '../../support/sms-gateway.ts'
import { decodeQuotedPrintable } from '../../support/smtp.ts'
import { type Answer, type Ask, P1, P2 } from '../identity-api.ts'
import { type People, startPeople } from '../people.ts'
import { COUNTRIES } from '../phone-number-corpus.ts'

const USER = '@asker:hs.test'
const EMAIL = '/validate/email/requestToken'
const MSISDN = '/validate/msisdn/requestToken'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

let people: People
let gateway: FakeGateway
let token: string
let count = 0

beforeAll(async () => {
  gateway = await startGateway()
  const messages_per_hour = {
    ...{ mails_to_address: 0, mails_of_sender: 0, sms_to_address: 0, sms_of_sender: 0, sms_to_country: 0 },
  }
  people = await startPeople({
    sessions: { messages_per_hour },
    sms: { gateway: 'http', http: { url: `${gateway.url}/send` } },
  })
  token = await people.tokenOf(USER)
})

afterAll(async () => {
  await people.close()
  await gateway.close()
})

beforeEach(() => {
  people.smtp.mails.length = 0
  gateway.requests.length = 0
})

const outcome = ({ status, body }: Answer) => [status, body.errcode]
const post = (path: string, ask: Ask) => people.identity.ask('POST', path, { token, ...ask })
const secret = () => `s${count++}`
const mailed = (email: unknown, change: object = {}) =>
  post(EMAIL, { body: { client_secret: secret(), email, send_attempt: 1, ...change } })
const dialled = (country: string, phone_number: string) =>
  post(MSISDN, { body: { client_secret: secret(), country, phone_number, send_attempt: 1 } })
const nothingSent = () => expect([people.smtp.mails.length, gateway.requests.length]).toEqual([0, 0])

describe('addresses', () => {
  it.each([
    'a@b@c',
    'a@evil.example@good.example',
    'al\u0000ice@example.org',
    'alice@exam\u0085ple.org',
    'alice\u202e@example.org',
    'alice@example.org\n',
    'alice@example.org\r\nBcc: all@example.org',
    'alice@example.org%0d%0aBcc: all@example.org',
    'alice@example.org,bob@example.org',
    'Alice <alice@example.org>',
    'mailto:alice@example.org',
    `${'a'.repeat(488)}@example.org`,
    `alice@${'example.'.repeat(60)}org`,
    'alice@ｅｘａｍｐｌｅ.org',
    'alice',
    'alice@',
    '',
  ])('M_INVALID_EMAIL, and no mail: %j', async (email) => {
    expect(outcome(await mailed(email))).toEqual([400, 'M_INVALID_EMAIL'])
    const form = new URLSearchParams({ client_secret: secret(), email, send_attempt: '1' })
    expect(outcome(await post(P1 + EMAIL, { body: form }))).toEqual([400, 'M_INVALID_EMAIL'])
    nothingSent()
  })

  it.each([
    ['alice+tag@example.org', 'alice+tag@example.org'],
    ['ALICE.Upper@Example.ORG', 'alice.upper@example.org'],
    ['Strauß@Example.com', 'strauss@example.com'],
    ['иван@почта.рф', 'иван@почта.рф'],
    ['a@xn--bcher-kva.example', 'a@xn--bcher-kva.example'],
  ])('%s is taken, and is one with %s', async (email, folded) => {
    const client_secret = secret()
    const first = await mailed(email, { client_secret })
    expect(outcome(first)).toEqual([200, undefined])
    const again = await mailed(folded, { client_secret })
    expect(again.body.sid).toBe(first.body.sid)
    expect(people.smtp.mails).toHaveLength(1)
    // Names beyond ASCII go out in the spelling of the domain name system.
    const [local] = folded.split('@')
    expect(people.smtp.mails[0]?.to).toEqual([expect.stringMatching(new RegExp(`^${local?.replace('+', '\\+')}@`))])
  })
})

describe('numbers of many countries', () => {
  it.each(COUNTRIES)('%s: %s is sent to, and %s; M_INVALID_ADDRESS for %s', async (country, good, msisdn, bad) => {
    expect(await dialled(country, good)).toMatchObject({ status: 200, body: { msisdn } })
    expect(gateway.requests).toHaveLength(1)
    expect(outcome(await dialled(country, bad))).toEqual([400, 'M_INVALID_ADDRESS'])
    expect(outcome(await dialled(country, `${good}\n`))).toEqual([400, 'M_INVALID_ADDRESS'])
    expect(gateway.requests).toHaveLength(1)
  })
})

describe('ids, and where to go next', () => {
  it.each(['sid', 'client_secret'])(
    '%s with a trailing newline, or too long: M_INVALID_PARAM everywhere',
    async (name) => {
      for (const bad of ['x\n', 'x\r', '\nx', 'x y', 'é', 'x'.repeat(256), '']) {
        const ids = { sid: 'x', client_secret: 'x', [name]: bad }
        for (const [path, rest] of [
          ['/validate/email/submitToken', { token: 'x' }],
          ['/validate/msisdn/submitToken', { token: 'x' }],
          ['/3pid/bind', { mxid: USER }],
          ['/3pid/unbind', { mxid: USER, threepid: { medium: 'email', address: 'a@b.test' } }],
        ] as const) {
          expect(outcome(await post(path, { body: { ...ids, ...rest } })), path).toEqual([400, 'M_INVALID_PARAM'])
        }
        const query = new URLSearchParams({ ...ids, token: 'x' })
        for (const path of ['/3pid/getValidated3pid', '/validate/email/submitToken', '/validate/msisdn/submitToken']) {
          const { status } = await people.identity.ask('GET', `${path}?${query}`, { token })
          expect(status, path).toBe(400)
        }
      }
      nothingSent()
    },
  )

  it.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\nscript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'https://user:pass@example.org/',
    'https://@example.org/',
    'https://example.org@evil.example/',
    'https://example.org\\@evil.example/',
    '//example.org/',
    '/relative',
    'https://',
    'https://example.org/\r\nSet-Cookie: a=b',
  ])('next_link %j: M_INVALID_PARAM, and nothing sent', async (next_link) => {
    expect(outcome(await mailed('alice@example.org', { next_link }))).toEqual([400, 'M_INVALID_PARAM'])
    const number = { client_secret: secret(), country: 'GB', phone_number: '07400 123456', send_attempt: 1, next_link }
    expect(outcome(await post(MSISDN, { body: number }))).toEqual([400, 'M_INVALID_PARAM'])
    nothingSent()
  })
})

describe('bodies', () => {
  const good = () => ({ client_secret: secret(), email: 'alice@example.org', send_attempt: 1 })

  it.each([
    ['no JSON', '{', 'M_NOT_JSON'],
    ['nothing', '', 'M_NOT_JSON'],
    ['a list', '[]', 'M_BAD_JSON'],
    ['a text', '"x"', 'M_BAD_JSON'],
    ['bytes that are no text', Buffer.from([0x7b, 0xff, 0x7d]), 'M_NOT_JSON'],
  ])('a body that is none: %s', async (_name, body, errcode) => {
    for (const path of ['/terms', '/lookup', '/3pid/unbind', '/store-invite', '/sign-ed25519']) {
      expect(outcome(await post(path, { body })), path).toEqual([400, errcode])
    }
  })

  it('facts S26: parameters that are given twice: M_INVALID_PARAM, and nothing sent', async () => {
    const form = 'client_secret=a&email=alice@example.org&send_attempt=1'
    for (const twice of ['email=bob@example.org', 'client_secret=b', 'send_attempt=2']) {
      const ask = { body: `${form}&${twice}`, headers: FORM }
      expect(outcome(await post(P1 + EMAIL, ask)), twice).toEqual([400, 'M_INVALID_PARAM'])
    }
    const submit = '/validate/msisdn/submitToken?sid=a&client_secret=b&token=c&token=d'
    expect(outcome(await people.identity.ask('GET', submit, { token }))).toEqual([400, 'M_INVALID_PARAM'])
    nothingSent()
  })

  it('facts S26: keys of prototypes are keys like others', async () => {
    const own = '{"__proto__":{"email":"alice@example.org"},"constructor":{},"client_secret":"a","send_attempt":1}'
    expect(outcome(await post(EMAIL, { body: own }))).toEqual([400, 'M_MISSING_PARAMS'])
    nothingSent()
  })

  it.each([
    'text/plain',
    'text/html',
    'application/xml',
    'multipart/form-data; boundary=x',
    'application/octet-stream',
  ])('a form that calls itself %s is none: M_NOT_JSON, and no mail', async (type) => {
    const body = 'client_secret=a&email=alice@example.org&send_attempt=1'
    const ask = { body, headers: { 'content-type': type } }
    expect(outcome(await post(EMAIL, ask))).toEqual([400, 'M_NOT_JSON'])
    expect(outcome(await post(P1 + EMAIL, ask))).toEqual([400, 'M_NOT_JSON'])
    nothingSent()
  })

  it('JSON is JSON whatever it calls itself, and a form that is JSON is not read as one', async () => {
    const body = JSON.stringify(good())
    expect((await post(EMAIL, { body, headers: { 'content-type': 'text/plain' } })).status).toBe(200)
    people.smtp.mails.length = 0
    expect(outcome(await post(EMAIL, { body, headers: FORM }))).toEqual([400, 'M_MISSING_PARAMS'])
    nothingSent()
  })

  it('facts S1: a body that is too long is refused, in chunks too', async () => {
    const most = people.server.services.config.limits.max_body_bytes
    const body = Buffer.alloc(most + 1, ' ')
    expect(outcome(await post(EMAIL, { body }))).toEqual([413, 'M_TOO_LARGE'])
    const chunks = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let sent = 0; sent <= most; sent += 65_536) controller.enqueue(new Uint8Array(65_536))
        controller.close()
      },
    })
    const sent = { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: chunks, duplex: 'half' }
    const answer = await fetch(people.server.baseUrl + P2 + EMAIL, sent as RequestInit).catch(() => undefined)
    expect([413, undefined]).toContain(answer?.status)
    nothingSent()
  })
})

it('facts S23: a link that was opened before its reader came shows the same page again', async () => {
  await people.requested('scanned@example.org', USER)
  const text = decodeQuotedPrintable(people.smtp.mails.at(-1)?.raw ?? '')
  const link = new URL(/https:\/\/id\.hearth\.test\/\S+/.exec(text)?.[0] ?? 'nothing:')
  const open = async () => (await fetch(people.server.baseUrl + link.pathname + link.search)).status
  expect([await open(), await open(), await open()]).toEqual([200, 200, 200])
})

it('facts S28: no credentials are asked of browsers, and no cookies set', async () => {
  for (const path of ['', '/terms', '/account', '/nowhere']) {
    const { headers } = await people.identity.ask('GET', P2 + path, { token, headers: { origin: 'https://app.test' } })
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('access-control-allow-credentials')).toBeNull()
    expect(headers.get('set-cookie')).toBeNull()
  }
})
