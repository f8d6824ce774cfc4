import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type Account, type Json, openApi, register } from '../../support/api.ts'
import { decodeQuotedPrintable, type SmtpSink, startSmtp } from '../../support/smtp.ts'
import { type Answer, type IdentityApi, openIdentity, P1, P2 } from '../identity-api.ts'

const HOUR = 3_600_000

let smtp: SmtpSink
let server: AccountServer
let identity: IdentityApi
let token: string
let directory: string
/** What the mail server answers instead of taking a message. */
let refusal: Error | null = null

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-sessions-'))
  smtp = await startSmtp({ hideSTARTTLS: true }, () => refusal)
  server = await startAccountServer({
    identity: {
      base_url: 'https://id.hearth.test',
      brand: 'Acme <ID>',
      outbox: directory,
      mail: { from: 'identity@hearth.test', smtp: { host: '127.0.0.1', port: smtp.port, security: 'none' } },
      sms: { refused_countries: ['FR'] },
    },
  })
  const api = openApi(server.baseUrl)
  identity = openIdentity(server.baseUrl)
  token = await identityTokenOf(await register(api, 'alice'))
  await api.close()
})

afterAll(async () => {
  await server.close()
  await smtp.close()
  await rm(directory, { recursive: true })
})

beforeEach(() => {
  refusal = null
  smtp.mails.length = 0
})

async function identityTokenOf({ userId, token: accessToken }: Account): Promise<string> {
  const path = `/_proto/client/v3/user/${encodeURIComponent(userId)}/openid/request_token`
  const openId = await identity.ask('POST', path, { token: accessToken, body: {} })
  return (await identity.ask('POST', '/account/register', { body: openId.body })).body.token
}

let counter = 0
const fresh = () => {
  counter++
  return { client_secret: `secret.${counter}=_-`, email: `user${counter}@example.org` }
}

const requestMail = (body: object, root = P2, headers = {}) =>
  identity.ask('POST', `${root}/validate/email/requestToken`, {
    token: root === P1 ? undefined : token,
    body: { send_attempt: 1, ...body },
    headers,
  })
const submit = (body: object, root = P2, medium = 'email') =>
  identity.ask('POST', `${root}/validate/${medium}/submitToken`, { token, body })
const validated = ({ sid, client_secret }: { sid: string; client_secret: string }) =>
  identity.ask('GET', `/3pid/getValidated3pid?${new URLSearchParams({ sid, client_secret })}`, { token })

/** The link of the newest mail, which leads to this server under the name it has in public. */
function newestLink(): URL {
  const text = decodeQuotedPrintable(smtp.mails.at(-1)?.raw ?? '')
  return new URL(/https:\/\/id\.hearth\.test\/\S+/.exec(text)?.[0] ?? 'nothing:')
}

const open = (link: URL, headers = {}) => identity.ask('GET', link.pathname + link.search, { headers })
const tokenIn = (link: URL) => link.searchParams.get('token') as string

/** Requests and reads the mail. */
async function begun(extra: object = {}) {
  const who = fresh()
  const answer = await requestMail({ ...who, ...extra })
  expect(answer).toMatchObject({ status: 200 })
  const link = newestLink()
  return { ...who, sid: answer.body.sid as string, link, token: tokenIn(link) }
}

const outcome = ({ status, body }: Answer) => [status, body.errcode]

describe('a session of an email address', () => {
  test('is requested, validated by POST, and tells what it has shown', async () => {
    const who = fresh()
    const answer = await requestMail({ ...who, email: `Straße.${who.email.toUpperCase()}` })
    expect(answer).toMatchObject({ status: 200, body: { sid: expect.stringMatching(/^[0-9a-zA-Z.=_-]{22,255}$/) } })
    const address = `strasse.${who.email}`
    expect(smtp.mails).toMatchObject([{ to: [address], from: 'identity@hearth.test' }])
    expect(smtp.mails[0]?.raw).toMatch(/^From: "?Acme ID"? <identity@hearth\.test>\r$/m)
    const { sid } = answer.body
    const { client_secret } = who
    expect(outcome(await validated({ sid, client_secret }))).toEqual([400, 'M_SESSION_NOT_VALIDATED'])
    const before = Date.now()
    const sent = { sid, client_secret, token: tokenIn(newestLink()) }
    expect(await submit(sent)).toMatchObject({ status: 200, body: { success: true } })
    const shown = await validated({ sid, client_secret })
    expect(shown).toMatchObject({ status: 200, body: { medium: 'email', address } })
    expect(shown.body.validated_at).toBeGreaterThanOrEqual(before)
    // Once more is a success once more, and changes nothing.
    expect(await submit(sent)).toMatchObject({ status: 200, body: { success: true } })
    expect((await validated({ sid, client_secret })).body).toEqual(shown.body)
  })

  it.each([
    ['the second generation as JSON', P2, (body: object) => body],
    ['the second generation as a form', P2, (body: Json) => new URLSearchParams(body)],
    ['the first as JSON', P1, (body: object) => body],
    ['the first as a form', P1, (body: Json) => new URLSearchParams(body)],
    ['the published paths', '/_matrix/identity/v2', (body: object) => body],
    ['the published paths of the first', '/_matrix/identity/api/v1', (body: object) => body],
  ] as const)('by %s', async (_name, root, write) => {
    const who = fresh()
    const bearer = root.endsWith('v1') ? undefined : token
    const post = (path: string, body: object) =>
      identity.ask('POST', `${root}/validate/email/${path}`, { token: bearer, body: write(body as Json) })
    const { body } = await post('requestToken', { ...who, send_attempt: 1 })
    const sent = { sid: body.sid, client_secret: who.client_secret, token: tokenIn(newestLink()) }
    expect(await post('submitToken', sent)).toMatchObject({ status: 200, body: { success: true } })
    const link = await identity.ask('GET', `${root}/validate/email/submitToken?${new URLSearchParams(sent)}`)
    expect([link.status, link.body]).toEqual([200, expect.stringContaining('Your email address is confirmed.')])
    const query = new URLSearchParams({ sid: body.sid, client_secret: who.client_secret })
    expect(await identity.ask('GET', `${root}/3pid/getValidated3pid?${query}`, { token: bearer })).toMatchObject({
      status: 200,
      body: { medium: 'email', address: who.email },
    })
  })

  it.each([
    ['POST', '/validate/email/requestToken'],
    ['POST', '/validate/email/submitToken'],
    ['POST', '/validate/msisdn/requestToken'],
    ['POST', '/validate/msisdn/submitToken'],
    ['GET', '/validate/msisdn/submitToken?sid=a&client_secret=b&token=c'],
    ['GET', '/3pid/getValidated3pid?sid=a&client_secret=b'],
  ])('%s %s needs an access token', async (method, path) => {
    const ask = method === 'POST' ? { body: {} } : {}
    expect(outcome(await identity.ask(method, path, ask))).toEqual([401, 'M_UNAUTHORIZED'])
  })
})

describe('the link of a mail', () => {
  test('validates without an access token, and shows a page that loads and runs nothing', async () => {
    const { link, sid, client_secret } = await begun()
    expect(link.pathname).toBe(`${P2}/validate/email/submitToken`)
    const page = await open(link)
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'/)
    expect(page.headers.get('cache-control')).toBe('no-store')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.body).toContain('Your email address is confirmed.')
    expect(page.body).toContain('Acme &#60;ID&#62;')
    expect(page.body).not.toMatch(/<script|<img|<link|src=/)
    expect((await validated({ sid, client_secret })).status).toBe(200)
    // Mail scanners open links first.
    expect((await open(link)).status).toBe(200)
  })

  test('leads on to where it was asked for, with the id of the session', async () => {
    const cases = [
      ['https://app.example.org/done', '?sid='],
      ['https://app.example.org/?a=b', '&sid='],
      ['https://app.example.org/#/register?hs=x', '&sid='],
    ] as const
    for (const [next_link, added] of cases) {
      const { link, sid } = await begun({ next_link })
      const answer = await open(link)
      expect([answer.status, answer.headers.get('location')]).toEqual([302, `${next_link}${added}${sid}`])
      expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
    }
  })

  test('leads nowhere before the token is right, and never where its own query says', async () => {
    const { link } = await begun({ next_link: 'https://app.example.org/done' })
    const wrong = new URL(link)
    wrong.searchParams.set('token', 'wrong')
    expect((await open(wrong)).headers.get('location')).toBeNull()
    const other = await begun()
    for (const name of ['nextLink', 'next_link']) other.link.searchParams.set(name, 'https://evil.example')
    const page = await open(other.link)
    expect([page.status, page.headers.get('location')]).toEqual([200, null])
  })

  test('shows what went wrong, in the language of the browser', async () => {
    const { link } = await begun()
    const wrong = new URL(link)
    wrong.searchParams.set('token', 'wrong')
    const page = await open(wrong, { 'accept-language': 'de-CH, en;q=0.5' })
    expect(page.status).toBe(400)
    expect(page.body).toContain('<html lang="de">')
    expect(page.body).toContain('nicht der richtige Link')
    const unknown = new URL(link)
    unknown.searchParams.set('sid', 'nobody')
    expect(await open(unknown)).toMatchObject({ status: 404, body: expect.stringContaining('not known here') })
    server.advance(24 * HOUR)
    expect(await open(link)).toMatchObject({ status: 400, body: expect.stringContaining('has expired') })
  })

  it.each([
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'https:app.example.org',
    'https:///app.example.org',
    '//app.example.org',
    '/path',
    'nonsense',
    'https://user:password@app.example.org/',
    'https://user@app.example.org/',
    'https://@app.example.org/',
    'https://app.example.org\\@evil.example/',
    'https://app.example.org/\r\nX: y',
    ' https://app.example.org/',
    `https://app.example.org/${'x'.repeat(2_000)}`,
  ])('may not lead to %j', async (next_link) => {
    expect(outcome(await requestMail({ ...fresh(), next_link }))).toEqual([400, 'M_INVALID_PARAM'])
    expect(smtp.mails).toEqual([])
  })
})

describe('send_attempt', () => {
  test('sends only when it is above the highest of its scope', async () => {
    const who = fresh()
    const sids = new Set<string>()
    const mailsAfter = async (send_attempt: number, extra: object = {}) => {
      const { status, body } = await requestMail({ ...who, send_attempt, ...extra })
      expect(status).toBe(200)
      sids.add(body.sid)
      return smtp.mails.length
    }
    expect(await mailsAfter(1)).toBe(1)
    const first = newestLink()
    expect(await mailsAfter(1)).toBe(1)
    expect(await mailsAfter(0)).toBe(1)
    expect(await mailsAfter(7)).toBe(2)
    expect(await mailsAfter(6)).toBe(2)
    expect(await mailsAfter(8, { email: who.email.toUpperCase() })).toBe(3)
    expect(sids.size).toBe(1)
    // The scope is address and secret.
    expect(await mailsAfter(1, { client_secret: 'another' })).toBe(4)
    expect(await mailsAfter(1, { email: `other.${who.email}` })).toBe(5)
    expect(sids.size).toBe(3)
    // A mail that was overtaken by the next one is good still.
    expect((await open(first)).status).toBe(200)
  })

  test('counts only what was sent, and the repeated one is sent', async () => {
    const who = fresh()
    for (const responseCode of [421, 550, 554]) {
      refusal = Object.assign(new Error('no'), { responseCode })
      expect(outcome(await requestMail(who))).toEqual([400, 'M_EMAIL_SEND_ERROR'])
    }
    refusal = null
    expect((await requestMail(who)).status).toBe(200)
    expect(smtp.mails).toHaveLength(1)
    expect((await open(newestLink())).status).toBe(200)
  })

  test('twenty at once are one mail', async () => {
    const who = fresh()
    const answers = await Promise.all(Array.from({ length: 20 }, () => requestMail(who)))
    expect(new Set(answers.map(({ body }) => body.sid)).size).toBe(1)
    expect(smtp.mails).toHaveLength(1)
  })
})

describe('wrong tokens', () => {
  test('are told apart from unknown sessions, whose every kind has one answer', async () => {
    const { sid, client_secret, token: right } = await begun()
    const wrong = await submit({ sid, client_secret, token: 'wrong' })
    expect(wrong).toMatchObject({ status: 400, body: { success: false, errcode: 'M_TOKEN_INCORRECT' } })
    const unknown = [
      await submit({ sid: 'nobody', client_secret, token: right }),
      await submit({ sid, client_secret: 'another', token: right }),
      await submit({ sid, client_secret, token: right }, P2, 'msisdn'),
    ]
    for (const answer of unknown) expect(answer).toMatchObject({ status: 404, body: unknown[0]?.body })
    expect(unknown[0]?.body).toMatchObject({ errcode: 'M_NO_VALID_SESSION', success: false })
    expect(await submit({ sid, client_secret, token: ` ${right}\n` })).toMatchObject({ status: 200 })
  })

  test('end the session, also beside re-requests and when the right one comes after them', async () => {
    const session = await begun()
    const { sid, client_secret } = session
    const guess = () => submit({ sid, client_secret, token: 'wrong' })
    for (let n = 0; n < 6; n++) expect(outcome(await guess())).toEqual([400, 'M_TOKEN_INCORRECT'])
    expect((await requestMail({ ...session, send_attempt: 2 })).status).toBe(200)
    for (let n = 0; n < 4; n++) expect(outcome(await guess())).toEqual([400, 'M_TOKEN_INCORRECT'])
    expect(outcome(await guess())).toEqual([400, 'M_SESSION_EXPIRED'])
    expect(outcome(await submit({ sid, client_secret, token: session.token }))).toEqual([400, 'M_SESSION_EXPIRED'])
    expect(outcome(await validated(session))).toEqual([400, 'M_SESSION_EXPIRED'])
    const again = await requestMail({ ...session, send_attempt: 3 })
    expect(outcome(again)).toEqual([429, 'M_LIMIT_EXCEEDED'])
    expect(again.body.retry_after_ms).toBeGreaterThan(0)
    expect(smtp.mails).toHaveLength(2)
  })

  test('5,000 at once: no more than ten are compared', async () => {
    const { sid, client_secret } = await begun()
    const proof = { sid, clientSecret: client_secret }
    const guesses = Array.from({ length: 5_000 }, (_, n) =>
      server.services.identity.sessions.submit('email', proof, `guess-${n}`).then(
        () => 'right',
        (error: { errcode: string }) => error.errcode,
      ),
    )
    const codes = await Promise.all(guesses)
    expect(codes.filter((code) => code === 'M_TOKEN_INCORRECT')).toHaveLength(10)
    expect(codes.filter((code) => code === 'M_SESSION_EXPIRED')).toHaveLength(4_990)
  })
})

describe('time', () => {
  test('an unvalidated session ends a day after it began, whatever is requested meanwhile', async () => {
    const session = await begun()
    server.advance(23 * HOUR)
    await requestMail({ ...session, send_attempt: 2 })
    server.advance(HOUR)
    expect(outcome(await submit(session))).toEqual([400, 'M_SESSION_EXPIRED'])
    expect(outcome(await validated(session))).toEqual([400, 'M_SESSION_EXPIRED'])
    // The secret comes before the clock: who has none learns nothing.
    expect(outcome(await validated({ ...session, client_secret: 'another' }))).toEqual([404, 'M_NO_VALID_SESSION'])
    const next = await requestMail({ ...session, send_attempt: 1 })
    expect(next.status).toBe(200)
    expect(next.body.sid).not.toBe(session.sid)
    expect(smtp.mails).toHaveLength(3)
    expect(outcome(await validated(session))).toEqual([400, 'M_SESSION_EXPIRED'])
    server.advance(5 * 24 * HOUR)
    expect(outcome(await validated(session))).toEqual([404, 'M_NO_VALID_SESSION'])
  })

  test('a validated one ends a day after that, and nothing makes it younger', async () => {
    const session = await begun()
    server.advance(23 * HOUR)
    expect((await submit(session)).status).toBe(200)
    server.advance(23 * HOUR)
    expect((await validated(session)).status).toBe(200)
    await requestMail({ ...session, send_attempt: 2 })
    expect((await submit(session)).status).toBe(200)
    server.advance(HOUR)
    expect(outcome(await validated(session))).toEqual([400, 'M_SESSION_EXPIRED'])
    expect(outcome(await submit(session))).toEqual([400, 'M_SESSION_EXPIRED'])
  })
})

test('clients in use send the attempt as text, under the published root', async () => {
  const { client_secret, email } = fresh()
  const path = '/_matrix/identity/v2/validate/email/requestToken'
  const ask = async (send_attempt: unknown) =>
    outcome(await identity.ask('POST', path, { token, body: { client_secret, email, send_attempt } }))
  expect(await ask('1')).toEqual([200, undefined])
  expect(smtp.mails).toHaveLength(1)
  expect(await ask('2')).toEqual([200, undefined])
  expect(await ask(2)).toEqual([200, undefined])
  expect(smtp.mails).toHaveLength(2)
  for (const bad of ['', '1.5', '-1', ' 3', '1e3', '9'.repeat(16), null, [], true]) {
    expect(await ask(bad)).toEqual([400, 'M_INVALID_PARAM'])
  }
})

describe('what is asked badly is refused, and nothing is sent:', () => {
  const good = { client_secret: 'good', email: 'good@example.org', send_attempt: 1 }

  it.each(['a@b@c', 'nodomain', '', 'a\r\nBcc: x@y.z@example.org', 'a@b.c\n', `${'x'.repeat(488)}@example.org`])(
    'the address %j',
    async (email) => {
      expect(outcome(await requestMail({ ...good, email }))).toEqual([400, 'M_INVALID_EMAIL'])
      expect(smtp.mails).toEqual([])
    },
  )

  it.each<[string, Json, string]>([
    ['no client_secret', { client_secret: undefined }, 'M_MISSING_PARAMS'],
    ['no email', { email: undefined }, 'M_MISSING_PARAMS'],
    ['no send_attempt', { send_attempt: undefined }, 'M_MISSING_PARAMS'],
    ['an empty secret', { client_secret: '' }, 'M_INVALID_PARAM'],
    ['a secret of 256', { client_secret: 'x'.repeat(256) }, 'M_INVALID_PARAM'],
    ['a secret with a newline', { client_secret: 'secret\n' }, 'M_INVALID_PARAM'],
    ['a secret with a slash', { client_secret: 'a/b' }, 'M_INVALID_PARAM'],
    ['a number for a secret', { client_secret: 1 }, 'M_INVALID_PARAM'],
    ['a list for an email', { email: ['a@b.c'] }, 'M_INVALID_PARAM'],
    ['null for an email', { email: null }, 'M_INVALID_PARAM'],
    ['half an attempt', { send_attempt: 1.5 }, 'M_INVALID_PARAM'],
    ['a negative attempt', { send_attempt: -1 }, 'M_INVALID_PARAM'],
    ['an attempt beyond 2^53', { send_attempt: 2 ** 53 }, 'M_INVALID_PARAM'],
    ['an attempt that is no number', { send_attempt: 'one' }, 'M_INVALID_PARAM'],
    ['a negative attempt as text', { send_attempt: '-1' }, 'M_INVALID_PARAM'],
    ['an attempt beyond 2^53 as text', { send_attempt: '9007199254740993' }, 'M_INVALID_PARAM'],
    ['no attempt in the text', { send_attempt: '' }, 'M_INVALID_PARAM'],
    ['a number for next_link', { next_link: 1 }, 'M_INVALID_PARAM'],
  ])('%s', async (_name, change, errcode) => {
    expect(outcome(await requestMail({ ...good, ...change }))).toEqual([400, errcode])
    expect(smtp.mails).toEqual([])
  })

  it.each<[string, Json, string]>([
    ['no sid', { sid: undefined }, 'M_MISSING_PARAMS'],
    ['no token', { token: undefined }, 'M_MISSING_PARAMS'],
    ['a sid with a newline', { sid: 'a\n' }, 'M_INVALID_PARAM'],
    ['a token of 256', { token: 'x'.repeat(256) }, 'M_INVALID_PARAM'],
    ['a number for a token', { token: 123456 }, 'M_INVALID_PARAM'],
  ])('to submit %s', async (_name, change, errcode) => {
    expect(outcome(await submit({ sid: 'a', client_secret: 'b', token: 'c', ...change }))).toEqual([400, errcode])
  })

  it.each([
    ['sid=a&sid=b&client_secret=c', 'M_INVALID_PARAM'],
    ['client_secret=c', 'M_MISSING_PARAMS'],
    ['sid=a%0A&client_secret=c', 'M_INVALID_PARAM'],
    ['sid=%00&client_secret=c', 'M_INVALID_PARAM'],
  ])('getValidated3pid?%s', async (query, errcode) => {
    expect(outcome(await identity.ask('GET', `/3pid/getValidated3pid?${query}`, { token }))).toEqual([400, errcode])
  })
})

test('neither addresses nor tokens nor secrets are logged or stored in the open', async () => {
  const session = await begun()
  refusal = new Error('no such mailbox <user@example.org>')
  await requestMail({ ...session, send_attempt: 2 })
  await open(session.link)
  for (const secret of [session.token, session.client_secret, session.email]) {
    expect(server.logged()).not.toContain(secret)
  }
  const [row] = await server.db.query<{ all: string }>('SELECT s::text AS all FROM identity_session s WHERE sid = $1', [
    session.sid,
  ])
  expect(row?.all).toContain(session.sid)
  for (const secret of [session.token, session.client_secret]) expect(row?.all).not.toContain(secret)
})

test('the janitor forgets sessions and counts that nobody asks for any more', async () => {
  const { sid } = await begun()
  server.advance(7 * 24 * HOUR)
  expect(await server.db.query('SELECT FROM identity_session WHERE sid = $1', [sid])).toHaveLength(1)
  const { identityChores } = await import('../../../src/domain/identity/identity-services.ts')
  const now = server.services.clock.now()
  await server.db.tx(async (tx) => {
    for (const chore of identityChores(server.services.config)) await chore(tx, now, 1_000)
  })
  expect(await server.db.query('SELECT FROM identity_session')).toEqual([])
  expect(await server.db.query('SELECT FROM identity_send_limit')).toEqual([])
})
