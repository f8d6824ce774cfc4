import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ContactPeople, ownPassword, type Proof, startContactPeople } from '../../contact/contact-people.ts'
import { type Account, type Json, login, PASSWORD } from '../../support/api.ts'

const EMAIL = 'm.login.email.identity'
const MSISDN = 'm.login.msisdn'
const NEW = 'another horse and battery'

let people: ContactPeople
let api: ContactPeople['api']
let count = 0

beforeAll(async () => {
  people = await startContactPeople({ registration: { enabled: true, email: 'optional', msisdn: 'optional' } })
  api = people.api
})

afterAll(() => people.close())

const whoami = (token: string) => api.request('GET', '/account/whoami', { token })
const enter = (identifier: Json, password: string, extra: Json = {}) =>
  api.request('POST', '/login', { body: { type: 'm.login.password', identifier, password, ...extra } })
const asUser = (user: string) => ({ type: 'm.id.user', user })

async function withEmail(): Promise<{ account: Account; email: string }> {
  const account = await people.account()
  const email = `owner${count++}@example.org`
  await people.add(account, await people.validated('account/3pid', email))
  return { account, email }
}

async function phoneProof(place: string, number: string): Promise<Proof> {
  const client_secret = `phone.${count++}`
  const { status, body } = await people.requestNumber(place, number, { client_secret })
  expect(status, JSON.stringify(body)).toBe(200)
  const submit = new URL(body.submit_url)
  const answer = await fetch(people.server.baseUrl + submit.pathname + submit.search, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ sid: body.sid, client_secret, token: people.code() }),
  })
  expect(answer.status).toBe(200)
  return { sid: body.sid, client_secret }
}

const change = (body: Json, token?: string) =>
  api.request('POST', '/account/password', { ...(token && { token }), body: { new_password: NEW, ...body } })
const creds = (proof: Proof, type = EMAIL) => ({ type, threepid_creds: { ...proof } })

describe('POST account/password with a token', () => {
  it('tells its flows: the password, or an address of the account', async () => {
    const account = await people.account()
    expect(await change({}, account.token)).toMatchObject({
      status: 401,
      body: {
        flows: [{ stages: ['m.login.password'] }, { stages: [EMAIL] }, { stages: [MSISDN] }],
        session: expect.any(String),
      },
    })
  })

  it('changes the password, logs out all other devices, and leaves the presented token alive', async () => {
    const account = await people.account()
    const other = await login(api, account.userId)
    const refreshing = (await enter(asUser(account.userId), PASSWORD, { refresh_token: true })).body
    expect((await change({ auth: ownPassword(account) }, account.token)).body).toEqual({})
    expect((await whoami(account.token)).status).toBe(200)
    for (const token of [other.token, refreshing.access_token]) {
      expect(await whoami(token)).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } })
    }
    const renewed = await api.request('POST', '/refresh', { body: { refresh_token: refreshing.refresh_token } })
    expect(renewed.status).toBe(401)
    const { devices } = await api.call('GET', '/devices', { token: account.token })
    expect(devices).toHaveLength(1)
    expect((await enter(asUser(account.userId), PASSWORD)).body.errcode).toBe('M_FORBIDDEN')
    expect((await enter(asUser(account.userId), NEW)).status).toBe(200)
  })

  it('leaves other devices alone with logout_devices false', async () => {
    const account = await people.account()
    const other = await login(api, account.userId)
    const answer = await change({ logout_devices: false, auth: ownPassword(account) }, account.token)
    expect(answer.status).toBe(200)
    for (const token of [account.token, other.token]) expect((await whoami(token)).status).toBe(200)
  })

  it('takes an address of the account, and not of another', async () => {
    const { account, email } = await withEmail()
    const stranger = await people.account()
    const proof = await people.validated('account/password', email)
    expect(await change({ auth: creds(proof) }, stranger.token)).toMatchObject({
      status: 403,
      body: { errcode: 'M_FORBIDDEN' },
    })
    const again = await people.validated('account/password', email)
    expect((await change({ auth: creds(again) }, account.token)).status).toBe(200)
    expect((await whoami(account.token)).status).toBe(200)
  })

  const refused: [name: string, body: Json, status: number, errcode: string][] = [
    ['a short password', { new_password: 'short' }, 400, 'M_WEAK_PASSWORD'],
    ['no password', { new_password: undefined }, 400, 'M_MISSING_PARAM'],
    ['a number for a password', { new_password: 7 }, 400, 'M_BAD_JSON'],
    ['logout_devices that is no boolean', { logout_devices: 'no' }, 400, 'M_BAD_JSON'],
  ]
  it.each(refused)('refuses %s before any stage', async (_name, body, status, errcode) => {
    const { token } = await people.account()
    expect(await change(body, token)).toMatchObject({ status, body: { errcode } })
  })

  it("takes no other user's password, and no dummy", async () => {
    const [account, other] = [await people.account(), await people.account()]
    for (const auth of [ownPassword(other), { type: 'm.login.dummy' }]) {
      expect((await change({ auth }, account.token)).status).toBe(401)
    }
    expect((await enter(asUser(account.userId), PASSWORD)).status).toBe(200)
  })

  it('lets no login by the old password slip through while it changes', async () => {
    const account = await people.account()
    const [changed, ...logins] = await Promise.all([
      change({ auth: ownPassword(account) }, account.token),
      ...Array.from({ length: 20 }, () => enter(asUser(account.userId), PASSWORD)),
    ])
    expect(changed.status).toBe(200)
    const live = await Promise.all(
      logins.map(async ({ status, body }) => status === 200 && (await whoami(body.access_token)).status === 200),
    )
    expect(live.filter(Boolean)).toEqual([])
  })
})

describe('POST account/password without a token', () => {
  it('tells the flows by address alone', async () => {
    expect((await change({})).body.flows).toEqual([{ stages: [EMAIL] }, { stages: [MSISDN] }])
  })

  it('resets the password by email, once, and ends every session', async () => {
    const { account, email } = await withEmail()
    const proof = await people.validated('account/password', email)
    expect((await change({ auth: creds(proof) })).status).toBe(200)
    expect((await whoami(account.token)).status).toBe(401)
    expect((await enter(asUser(account.userId), NEW)).status).toBe(200)
    expect((await change({ new_password: 'a third password', auth: creds(proof) })).status).toBe(401)
    expect((await enter(asUser(account.userId), NEW)).status).toBe(200)
  })

  it('resets the password by phone', async () => {
    const account = await people.account()
    await people.add(account, await phoneProof('account/3pid', '07700 900100'))
    const proof = await phoneProof('account/password', '+44 7700 900100')
    expect((await change({ auth: creds(proof, MSISDN) })).status).toBe(200)
    expect((await enter(asUser(account.userId), NEW)).status).toBe(200)
  })

  it('takes no address that was validated for something else', async () => {
    const { account, email } = await withEmail()
    const proof = await people.validated('register', `new-${email}`)
    expect((await change({ auth: creds(proof) })).body.errcode).toBe('M_THREEPID_AUTH_FAILED')
    expect((await enter(asUser(account.userId), PASSWORD)).status).toBe(200)
  })
})

describe('registration with addresses', () => {
  it('offers each in the flows, and the account has what was shown', async () => {
    const first = await api.request('POST', '/register', { body: {} })
    expect(first.body.flows).toEqual([
      { stages: ['m.login.dummy'] },
      { stages: [MSISDN] },
      { stages: [EMAIL] },
      { stages: [MSISDN, EMAIL] },
    ])
    const wish = { username: 'reachable', password: PASSWORD }
    const { session } = first.body
    const phone = await phoneProof('register', '07700 900200')
    const one = await api.request('POST', '/register', {
      body: { ...wish, auth: { ...creds(phone, MSISDN), session } },
    })
    expect(one.status).toBe(200)
    const { threepids } = await api.call('GET', '/account/3pid', { token: one.body.access_token })
    expect(threepids).toMatchObject([{ medium: 'msisdn', address: '447700900200' }])
    const email = await people.validated('register', 'reachable@example.org')
    const two = await api.request('POST', '/register', {
      body: { ...wish, username: 'mailed', auth: creds(email) },
    })
    expect(two.status).toBe(200)
  })

  it('gives an address to one of two who registered with it at once', async () => {
    const proofs = [
      await people.validated('register', 'contested@example.org'),
      await people.validated('register', 'contested@example.org'),
    ]
    const answers = await Promise.all(
      proofs.map((proof, index) =>
        api.request('POST', '/register', {
          body: { username: `contender${index}`, password: PASSWORD, auth: creds(proof) },
        }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
    expect(answers.find(({ status }) => status === 400)?.body.errcode).toBe('M_THREEPID_IN_USE')
  })
})

describe('login by identifiers (client-server API, "Identifier types")', () => {
  let account: Account
  let email: string

  beforeAll(async () => {
    ;({ account, email } = await withEmail())
    await people.add(account, await phoneProof('account/3pid', '07700 900300'))
  })

  const accepted: [name: string, identifier: () => Json][] = [
    ['m.id.user', () => ({ type: 'm.id.user', user: account.userId })],
    ['m.id.thirdparty with an email', () => ({ type: 'm.id.thirdparty', medium: 'email', address: email })],
    ['it in capitals', () => ({ type: 'm.id.thirdparty', medium: 'email', address: email.toUpperCase() })],
    ['m.id.thirdparty with a phone', () => ({ type: 'm.id.thirdparty', medium: 'msisdn', address: '447700900300' })],
    ['m.id.phone', () => ({ type: 'm.id.phone', country: 'GB', phone: '07700 900300' })],
    ['m.id.phone from abroad', () => ({ type: 'm.id.phone', country: 'FR', phone: '+44 7700 900300' })],
    ['m.id.phone with `number`', () => ({ type: 'm.id.phone', country: 'gb', number: '(0)7700 900-300' })],
  ]
  it.each(accepted)('knows %s', async (_name, identifier) => {
    expect(await enter(identifier(), PASSWORD)).toMatchObject({ status: 200, body: { user_id: account.userId } })
    expect(await enter(identifier(), 'wrong password')).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
  })

  it('knows the keys of older clients', async () => {
    const old = { type: 'm.login.password', medium: 'email', address: email, password: PASSWORD }
    expect(await api.request('POST', '/login', { body: old })).toMatchObject({ body: { user_id: account.userId } })
  })

  const refused: [name: string, identifier: Json, status: number, errcode: string][] = [
    ['an unknown email', { type: 'm.id.thirdparty', medium: 'email', address: 'no@x.test' }, 403, 'M_FORBIDDEN'],
    ['an address with a NUL', { type: 'm.id.thirdparty', medium: 'email', address: '\0' }, 403, 'M_FORBIDDEN'],
    ['an unknown phone', { type: 'm.id.phone', country: 'GB', phone: '07700 900999' }, 403, 'M_FORBIDDEN'],
    ['what is no phone', { type: 'm.id.phone', country: 'GB', phone: 'x' }, 403, 'M_FORBIDDEN'],
    ['an unknown country', { type: 'm.id.phone', country: 'XX', phone: '1' }, 400, 'M_INVALID_PARAM'],
    ['another medium', { type: 'm.id.thirdparty', medium: 'fax', address: '1' }, 400, 'M_UNKNOWN'],
    ['no address', { type: 'm.id.thirdparty', medium: 'email' }, 400, 'M_MISSING_PARAM'],
    ['no number', { type: 'm.id.phone', country: 'GB' }, 400, 'M_MISSING_PARAM'],
    ['a number for a phone', { type: 'm.id.phone', country: 'GB', phone: 7 }, 400, 'M_BAD_JSON'],
    ['another type', { type: 'm.id.magic' }, 400, 'M_UNKNOWN'],
    ['no type', { user: 'x' }, 400, 'M_UNKNOWN'],
  ]
  it.each(refused)('refuses %s', async (_name, identifier, status, errcode) => {
    expect(await enter(identifier, PASSWORD)).toMatchObject({ status, body: { errcode } })
  })

  it('knows them in the stage m.login.password too', async () => {
    const { deviceId } = await login(api, account.userId)
    const identifier = { type: 'm.id.thirdparty', medium: 'email', address: email }
    const answer = await api.request('DELETE', `/devices/${deviceId}`, {
      token: account.token,
      body: { auth: { type: 'm.login.password', identifier, password: PASSWORD } },
    })
    expect(answer.status).toBe(200)
  })
})
