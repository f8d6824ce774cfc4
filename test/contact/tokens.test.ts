import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Answer, type ContactPeople, startContactPeople } from './contact-people.ts'

const HOUR = 3_600_000
const PLACES = ['register', 'account/password', 'account/3pid'] as const

let people: ContactPeople
let counter = 0
let email: string
/** Belongs to an account. */
const OWNED = 'owned@example.org'
const OWNED_NUMBER = '07400 100000'

const outcome = ({ status, body }: Answer) => [status, body.errcode]
const submit = (path: string, body: object) =>
  people.api
    .request('POST', path, { body })
    .then(({ status, body: answer }) => [status, answer.errcode ?? answer.success])

beforeAll(async () => {
  people = await startContactPeople({
    contact: { allowed_emails: ['*@example.org', '*@sub.test'], allowed_numbers: ['44*', '33*'] },
  })
  const owner = await people.account('owner')
  await people.add(owner, await people.validated('account/3pid', OWNED))
  const { body } = await people.requestNumber('account/3pid', OWNED_NUMBER, { client_secret: 'owned' })
  await people.api.call('POST', new URL(body.submit_url).pathname, {
    body: { sid: body.sid, client_secret: 'owned', token: people.code() },
  })
  await people.add(owner, { sid: body.sid, client_secret: 'owned' })
  expect(await people.listed(owner)).toHaveLength(2)
})
afterAll(() => people.close())

beforeEach(() => {
  email = `user${counter++}@example.org`
  people.refuseMails(null)
  people.smtp.mails.length = 0
  people.gateway.requests.length = 0
  people.gateway.answer = { status: 200, body: '{}' }
})

/** An address that the place takes. */
const addressFor = (place: string) => (place === 'account/password' ? OWNED : email)
const numberFor = (place: string) => (place === 'account/password' ? OWNED_NUMBER : `07400 1234${10 + (counter % 90)}`)

describe.each(PLACES)('seed 2, POST C/%s/{email,msisdn}/requestToken', (place) => {
  it('200 {sid}, without submit_url: the mail has a link, and no token is needed', async () => {
    const { status, body } = await people.requestEmail(place, addressFor(place))
    expect(status).toBe(200)
    expect(body).toEqual({ sid: expect.stringMatching(/^[0-9a-zA-Z.=_-]{1,255}$/) })
    expect(people.smtp.mails.map(({ to }) => to)).toEqual([[addressFor(place)]])
    expect(people.link().searchParams.get('sid')).toBe(body.sid)
    expect((await people.follow()).status).toBe(200)
  })

  it('200 {sid, submit_url} for a number; the code is submitted there without an access token, as JSON or form', async () => {
    const { status, body } = await people.requestNumber(place, numberFor(place), { client_secret: `sms${counter}` })
    expect(status).toBe(200)
    expect(body).toMatchObject({ sid: expect.any(String), submit_url: expect.stringMatching(/^http:.*submitToken$/) })
    expect(body.msisdn).toMatch(/^447400/)
    const proof = { sid: body.sid, client_secret: `sms${counter}` }
    const url = new URL(body.submit_url).pathname
    expect(await submit(url, { ...proof, token: '000000x' })).toEqual([400, 'M_TOKEN_INCORRECT'])
    expect(await submit(url, { ...proof, token: people.code() })).toEqual([200, true])
    const form = await fetch(people.server.baseUrl + url, {
      method: 'POST',
      body: new URLSearchParams({ ...proof, token: people.code() }),
    })
    expect(await form.json()).toEqual({ success: true })
  })

  it('under both generations and roots', async () => {
    for (const prefix of ['/_matrix/client/v3', '/_matrix/client/r0', '/_proto/client/v3', '/_proto/client/r0']) {
      const body = {
        client_secret: `root${counter}${prefix.replaceAll('/', '.')}`,
        email: addressFor(place),
        send_attempt: 1,
      }
      const answer = await people.api.request('POST', `${prefix}/${place}/email/requestToken`, { body })
      expect(answer.status).toBe(200)
      expect(people.link().pathname).toMatch(new RegExp(`^/${prefix.split('/')[1]}/client/unstable/`))
      expect((await people.follow()).status).toBe(200)
    }
  })

  it('send_attempt: a repeated one sends nothing and has the same sid, a higher one sends', async () => {
    const ask = (send_attempt: number) =>
      people.requestEmail(place, addressFor(place), { client_secret: `attempt${counter}`, send_attempt })
    const first = (await ask(1)).body.sid
    expect((await ask(1)).body.sid).toBe(first)
    expect(people.smtp.mails).toHaveLength(1)
    expect((await ask(2)).body.sid).toBe(first)
    expect(people.smtp.mails).toHaveLength(2)
    const parallel = await Promise.all(Array.from({ length: 10 }, () => ask(3)))
    expect(new Set(parallel.map(({ body }) => body.sid))).toEqual(new Set([first]))
    expect(people.smtp.mails).toHaveLength(3)
  })

  it('id_server is ignored where the homeserver handles verification', async () => {
    const ignored = { id_server: 'untrusted.example', id_access_token: 'x' }
    expect((await people.requestEmail(place, addressFor(place), ignored)).status).toBe(200)
    expect(people.smtp.mails).toHaveLength(1)
  })

  it.each([
    [{ client_secret: 'ü' }, 'M_INVALID_PARAM'],
    [{ client_secret: 'secret\n' }, 'M_INVALID_PARAM'],
    [{ client_secret: '' }, 'M_INVALID_PARAM'],
    [{ client_secret: 'x'.repeat(256) }, 'M_INVALID_PARAM'],
    [{ client_secret: undefined }, 'M_MISSING_PARAM'],
    [{ send_attempt: undefined }, 'M_MISSING_PARAM'],
    [{ send_attempt: '1' }, 'M_BAD_JSON'],
    [{ send_attempt: -1 }, 'M_INVALID_PARAM'],
    [{ send_attempt: 1.5 }, 'M_BAD_JSON'],
    [{ email: undefined }, 'M_MISSING_PARAM'],
    [{ email: 7 }, 'M_BAD_JSON'],
    ...[
      'nodomain',
      'a@b@c',
      'a b@example.org',
      'a@example.org\r\nBcc: x@example.org',
      '<a@example.org>',
      '',
      '@example.org',
    ].map((bad): [object, string] => [{ email: bad }, 'M_INVALID_PARAM']),
    [{ email: `${'x'.repeat(500)}@example.org` }, 'M_INVALID_PARAM'],
    ...['javascript:alert(1)', 'https://user:pw@example.org/', '//example.org', 'file:///etc/passwd'].map(
      (bad): [object, string] => [{ next_link: bad }, 'M_INVALID_PARAM'],
    ),
  ])('bad input %j: 400 %s, and no mail', async (change, errcode) => {
    expect(outcome(await people.requestEmail(place, addressFor(place), change))).toEqual([400, errcode])
    expect(people.smtp.mails).toEqual([])
  })

  it.each([
    [{ phone_number: '12' }, 'M_INVALID_PARAM'],
    [{ phone_number: 'not a number' }, 'M_INVALID_PARAM'],
    [{ country: 'XX' }, 'M_INVALID_PARAM'],
    [{ country: undefined }, 'M_MISSING_PARAM'],
    [{ phone_number: undefined }, 'M_MISSING_PARAM'],
  ])('bad number %j: 400 %s, and no message', async (change, errcode) => {
    expect(outcome(await people.requestNumber(place, numberFor(place), change))).toEqual([400, errcode])
    expect(people.gateway.requests).toEqual([])
  })

  it('403 M_THREEPID_DENIED for addresses that the operator does not allow, and for countries that get no messages', async () => {
    expect(outcome(await people.requestEmail(place, 'a@elsewhere.test'))).toEqual([403, 'M_THREEPID_DENIED'])
    expect(outcome(await people.requestEmail(place, 'a@example.org.evil.test'))).toEqual([403, 'M_THREEPID_DENIED'])
    const number = (phone_number: string, country: string) =>
      people.api
        .request('POST', `/${place}/msisdn/requestToken`, {
          body: { client_secret: 'x', country, phone_number, send_attempt: 1 },
        })
        .then(outcome)
    expect(await number('030 901820', 'DE')).toEqual([403, 'M_THREEPID_DENIED'])
    // Allowed, and refused by the options of the messages, or by the gateway.
    if (place !== 'account/password') expect(await number('06 12 34 56 78', 'FR')).toEqual([403, 'M_THREEPID_DENIED'])
    people.gateway.answer = { status: 400, body: 'barred' }
    expect(outcome(await people.requestNumber(place, numberFor(place)))).toEqual([403, 'M_THREEPID_DENIED'])
    expect(people.smtp.mails).toEqual([])
  })

  it('400 M_EMAIL_SEND_ERROR when the mail server takes nothing, and the attempt is not counted', async () => {
    people.refuseMails(Object.assign(new Error('no room'), { responseCode: 552 }))
    const change = { client_secret: `fails${counter}` }
    expect(outcome(await people.requestEmail(place, addressFor(place), change))).toEqual([400, 'M_EMAIL_SEND_ERROR'])
    people.refuseMails(null)
    expect((await people.requestEmail(place, addressFor(place), change)).status).toBe(200)
    expect(people.smtp.mails).toHaveLength(1)
  })
})

describe('seed 2: whose address it may be', () => {
  it.each(['register', 'account/3pid'])(
    '%s: 400 M_THREEPID_IN_USE for an address of an account, in any spelling',
    async (place) => {
      for (const spelling of [OWNED, 'OWNED@Example.ORG']) {
        expect(outcome(await people.requestEmail(place, spelling))).toEqual([400, 'M_THREEPID_IN_USE'])
      }
      for (const spelling of [OWNED_NUMBER, '+44 7400 100000', '(07400) 100-000']) {
        expect(outcome(await people.requestNumber(place, spelling))).toEqual([400, 'M_THREEPID_IN_USE'])
      }
      expect(people.smtp.mails).toEqual([])
      expect(people.gateway.requests).toEqual([])
    },
  )

  it('account/password: 400 M_THREEPID_NOT_FOUND for an address of nobody; M_THREEPID_IN_USE is not returned', async () => {
    expect(outcome(await people.requestEmail('account/password', email))).toEqual([400, 'M_THREEPID_NOT_FOUND'])
    expect(outcome(await people.requestNumber('account/password', '07400 999999'))).toEqual([
      400,
      'M_THREEPID_NOT_FOUND',
    ])
    expect((await people.requestEmail('account/password', OWNED)).status).toBe(200)
    expect(people.smtp.mails.map(({ to }) => to)).toEqual([[OWNED]])
  })

  it('trying addresses counts as sending: nobody asks about one without end', async () => {
    const few = await startContactPeople({
      identity: { sessions: { messages_per_hour: { mails_of_sender: 3 } } },
    })
    const answers: unknown[] = []
    for (let n = 0; n < 5; n++)
      answers.push((await few.requestEmail('account/password', `n${n}@example.org`)).body.errcode)
    expect(answers).toEqual([
      ...['M_THREEPID_NOT_FOUND', 'M_THREEPID_NOT_FOUND', 'M_THREEPID_NOT_FOUND'],
      ...['M_LIMIT_EXCEEDED', 'M_LIMIT_EXCEEDED'],
    ])
    await few.close()
  })

  it('nobody is mailed for an account that cannot be made', async () => {
    const closed = await startContactPeople({ registration: { enabled: false } })
    expect(outcome(await closed.requestEmail('register', email))).toEqual([403, 'M_FORBIDDEN'])
    expect(outcome(await closed.requestNumber('register', '07400 123456'))).toEqual([403, 'M_FORBIDDEN'])
    expect(closed.smtp.mails).toEqual([])
    await closed.close()
  })
})

describe('the link of a mail', () => {
  it('shows a page, and leads on to next_link with the sid', async () => {
    await people.requestEmail('register', email)
    const { status, page } = await people.follow()
    expect(status).toBe(200)
    expect(page).toContain('Your email address is confirmed')
    const { body } = await people.requestEmail('account/3pid', email, { next_link: 'https://app.example.org/#/x' })
    const followed = await people.follow()
    expect(followed).toMatchObject({ status: 302, location: `https://app.example.org/#/x?sid=${body.sid}` })
  })

  it('for a new password wants to be confirmed: a program that only opens links confirms nothing', async () => {
    const { body } = await people.requestEmail('account/password', OWNED, { client_secret: 'scanned' })
    const url = people.link()
    for (let n = 0; n < 3; n++) {
      const opened = await fetch(people.server.baseUrl + url.pathname + url.search)
      expect(opened.headers.get('content-security-policy')).toContain("form-action 'self'")
      expect(opened.headers.get('cache-control')).toBe('no-store')
      expect(await opened.text()).toContain('Set a new password?')
    }
    const isProven = () =>
      people.server.services.contactSessions.findValidated({ sid: body.sid, clientSecret: 'scanned' })
    await expect(isProven()).rejects.toMatchObject({ errcode: 'M_SESSION_NOT_VALIDATED' })
    expect((await people.follow()).status).toBe(200)
    expect(await isProven()).toMatchObject({ address: OWNED, purpose: 'password' })
  })

  it('for a new password names next_link on the page after the form', async () => {
    await people
      .requestEmail('account/password', OWNED, { next_link: 'https://app.example.org/done?a=1&b="' })
      .then(outcome)
    await people.requestEmail('account/password', OWNED, { next_link: 'https://app.example.org/done?a=1&b=2' })
    const { page } = await people.follow()
    expect(page).toMatch(/<a class="button" href="https:\/\/app\.example\.org\/done\?a=1&#38;b=2&#38;sid=/)
  })

  it('wrong, cut off and expired ones: a page that says so, with its status', async () => {
    await people.requestEmail('register', email)
    const url = people.link()
    const open = async (change: Record<string, string>) => {
      const query = new URLSearchParams({ ...Object.fromEntries(url.searchParams), ...change })
      const { status, headers } = await fetch(`${people.server.baseUrl}${url.pathname}?${query}`)
      return [status, headers.get('content-type')?.split(';')[0]]
    }
    expect(await open({ token: 'wrong' })).toEqual([400, 'text/html'])
    expect(await open({ sid: 'unknown' })).toEqual([404, 'text/html'])
    people.server.advance(25 * HOUR)
    expect(await open({})).toEqual([400, 'text/html'])
  })

  it.each(['/other/email/', '/register/fax/', '/__proto__/email/', '/constructor/email/'])(
    '%s: 404 M_UNRECOGNIZED',
    async (place) => {
      const path = `/_matrix/client/unstable/hearth/validate${place}submitToken`
      const body = { sid: 'x', client_secret: 'x', token: 'x' }
      expect(outcome(await people.api.request('POST', path, { body }))).toEqual([404, 'M_UNRECOGNIZED'])
      expect(outcome(await people.api.request('GET', `${path}?sid=x&client_secret=x&token=x`))).toEqual([
        404,
        'M_UNRECOGNIZED',
      ])
    },
  )
})

describe('realms: a session counts where it was begun', () => {
  it('is unknown in the identity service, and one of the identity service is unknown here', async () => {
    const account = await people.account()
    const token = await people.identityToken(account)
    const own = await people.validated('account/3pid', email)
    const asked = new URLSearchParams({ ...own })
    const path = '/_matrix/identity/v2'
    expect(outcome(await people.api.request('GET', `${path}/3pid/getValidated3pid?${asked}`, { token }))).toEqual([
      404,
      'M_NO_VALID_SESSION',
    ])
    expect(
      outcome(await people.api.request('POST', `${path}/3pid/bind`, { token, body: { ...own, mxid: account.userId } })),
    ).toEqual([404, 'M_NO_VALID_SESSION'])

    const begun = { client_secret: 'identity', email, send_attempt: 1 }
    const { sid } = await people.api.call('POST', `${path}/validate/email/requestToken`, { token, body: begun })
    expect(people.link().pathname).toBe('/_matrix/identity/v2/validate/email/submitToken')
    const mailed = { sid, client_secret: 'identity', token: people.link().searchParams.get('token') }
    for (const purpose of ['register', 'password', 'add']) {
      const submitPath = `/_matrix/client/unstable/hearth/validate/${purpose}/email/submitToken`
      expect(await submit(submitPath, mailed)).toEqual([404, 'M_NO_VALID_SESSION'])
    }
    expect((await people.follow()).status).toBe(200)
    expect(outcome(await people.add(account, { sid, client_secret: 'identity' }))).toEqual([
      403,
      'M_THREEPID_AUTH_FAILED',
    ])
    expect(await people.listed(account)).toEqual([])
  })

  it('the same client_secret and address make a session of each place', async () => {
    const change = { client_secret: `shared${counter}` }
    const one = await people.requestEmail('register', email, change)
    const other = await people.requestEmail('account/3pid', email, change)
    expect(one.body.sid).not.toBe(other.body.sid)
    expect(people.smtp.mails).toHaveLength(2)
  })

  it('a token of one purpose validates no session of another', async () => {
    const change = { client_secret: `cross${counter}` }
    const { body } = await people.requestEmail('register', email, change)
    const token = people.link().searchParams.get('token')
    const path = '/_matrix/client/unstable/hearth/validate/add/email/submitToken'
    expect(await submit(path, { sid: body.sid, ...change, token })).toEqual([404, 'M_NO_VALID_SESSION'])
  })
})

describe('guessing', () => {
  it('500 wrong codes at once: five are compared, and the session is dead', async () => {
    const { body } = await people.requestNumber('register', '07400 555555', { client_secret: 'guessed' })
    const path = new URL(body.submit_url).pathname
    const right = people.code()
    const wrong = (n: number) => String((Number(right) + n) % 1_000_000).padStart(6, '0')
    const answers = await Promise.all(
      Array.from({ length: 500 }, (_, n) =>
        submit(path, { sid: body.sid, client_secret: 'guessed', token: wrong(n + 1) }),
      ),
    )
    expect(answers.filter(([, errcode]) => errcode === 'M_TOKEN_INCORRECT')).toHaveLength(5)
    expect(answers.filter(([, errcode]) => errcode === 'M_SESSION_EXPIRED')).toHaveLength(495)
    expect(await submit(path, { sid: body.sid, client_secret: 'guessed', token: right })).toEqual([
      400,
      'M_SESSION_EXPIRED',
    ])
  })
})
