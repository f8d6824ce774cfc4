import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type IdentityApi, openIdentity } from '../identity/identity-api.ts'
import { type Account, type Api, createRoom, openApi, PASSWORD, register, syncPath } from '../support/api.ts'
import { type Authority, createAuthority } from '../support/certificate.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { decodeQuotedPrintable, type SmtpSink, startSmtp } from '../support/smtp.ts'
import { json, proxyTo, startTlsServer, type TlsServer } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

/** A homeserver without an identity service, and another process that is one; each knows the other by its name, over TLS. */
let authority: Authority
let smtp: SmtpSink
let homeFront: TlsServer
let serviceFront: TlsServer
let home: TestServer
let service: ChildServer
let identity: IdentityApi
let api: Api
let idServer: string

let counter = 0
let email: string
let alice: Account
let token: string

beforeAll(async () => {
  authority = createAuthority()
  smtp = await startSmtp({ hideSTARTTLS: true })
  homeFront = await startTlsServer(authority.issue(['localhost']), json({}, 503))
  serviceFront = await startTlsServer(authority.issue(['localhost']), json({}, 503))
  idServer = `localhost:${serviceFront.port}`
  home = await startServer({
    server_name: `localhost:${homeFront.port}` as never,
    roles: ['client'],
    outbound: { ca_file: authority.file },
    contact: { validated_elsewhere: ['email'] },
    identity: { sms: { gateway: 'none' } },
    registration: { email: 'optional' },
    identity_servers: { trusted: [idServer as never, 'localhost:1' as never] },
  })
  service = await startChildServer({
    serverName: idServer,
    env: {
      HEARTH__ROLES: 'identity',
      HEARTH__OUTBOUND__CA_FILE: authority.file,
      HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.1',
      HEARTH__IDENTITY__BASE_URL: `https://${idServer}`,
      HEARTH__IDENTITY__MAIL__FROM: 'id@hearth.test',
      HEARTH__IDENTITY__MAIL__SMTP__HOST: '127.0.0.1',
      HEARTH__IDENTITY__MAIL__SMTP__PORT: String(smtp.port),
      HEARTH__IDENTITY__MAIL__SMTP__SECURITY: 'none',
    },
  })
  homeFront.handler = proxyTo(home.baseUrl)
  serviceFront.handler = proxyTo(service.baseUrl)
  identity = openIdentity(service.baseUrl)
  api = openApi(home.baseUrl)
})

afterAll(async () => {
  await api.close()
  await home.close()
  await service.dispose()
  for (const each of [homeFront, serviceFront, smtp]) await each.close()
  authority.remove()
})

beforeEach(async () => {
  email = `Remote${counter++}@Example.org`
  alice = await register(api, `alice${counter}`)
  token = await identityToken(alice)
})

async function identityToken({ userId, token: by }: Account): Promise<string> {
  const openId = await api.call('POST', `/user/${encodeURIComponent(userId)}/openid/request_token`, {
    token: by,
    body: {},
  })
  const answer = await identity.ask('POST', '/_matrix/identity/v2/account/register', { body: openId })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return answer.body.token
}

async function requested(): Promise<{ sid: string; client_secret: string }> {
  const client_secret = `remote${counter}`
  const body = { client_secret, email, send_attempt: 1 }
  const { sid } = (await identity.ask('POST', '/validate/email/requestToken', { token, body })).body
  return { sid, client_secret }
}

async function credentials(): Promise<object> {
  const proof = await requested()
  const mailed = /[?&]token=([\w-]+)/.exec(decodeQuotedPrintable(smtp.mails.at(-1)?.raw ?? ''))?.[1]
  await identity.ask('POST', '/validate/email/submitToken', { token, body: { ...proof, token: mailed } })
  return { ...proof, id_server: idServer, id_access_token: token }
}

const post = (path: string, body: object, by = alice) => api.request('POST', path, { token: by.token, body })
const lookedUp = async () => {
  const query = new URLSearchParams({ medium: 'email', address: email })
  return (await identity.ask('GET', `/_matrix/identity/api/v1/lookup?${query}`)).body.mxid
}
const named = () => ({ medium: 'email', address: email })

describe('an identity server in another process', () => {
  it('binds, and unbinds by the signature of the homeserver, wherever it was that the user bound', async () => {
    expect(await post('/account/3pid/bind', await credentials())).toEqual({ status: 200, body: {} })
    expect(await lookedUp()).toBe(alice.userId)
    homeFront.requests.length = 0
    expect((await post('/account/3pid/unbind', named())).body).toEqual({ id_server_unbind_result: 'success' })
    expect(await lookedUp()).toBeUndefined()
    expect((await post('/account/3pid/unbind', named())).body).toEqual({ id_server_unbind_result: 'no-support' })
  })

  it('by id_server, in the spelling of the client', async () => {
    await post('/account/3pid/bind', await credentials())
    const body = { ...named(), id_server: idServer.toUpperCase() }
    expect((await post('/account/3pid/delete', body)).body).toEqual({ id_server_unbind_result: 'success' })
    expect(await lookedUp()).toBeUndefined()
  })

  it('ends nothing of another user: the homeserver signs for whoever asks', async () => {
    await post('/account/3pid/bind', await credentials())
    const mallory = await register(api, `mallory${counter}`)
    await post('/account/3pid/unbind', { ...named(), id_server: idServer }, mallory)
    expect(await lookedUp()).toBe(alice.userId)
  })

  it('has its errors passed on, codes and statuses', async () => {
    const proof = await requested()
    const creds = { ...proof, id_server: idServer, id_access_token: token }
    const bind = async (change: object) => {
      const { status, body } = await post('/account/3pid/bind', { ...creds, ...change })
      return [status, body.errcode]
    }
    expect(await bind({})).toEqual([400, 'M_SESSION_NOT_VALIDATED'])
    expect(await bind({ client_secret: 'wrong' })).toEqual([404, 'M_NO_VALID_SESSION'])
    expect(await bind({ id_access_token: 'wrong' })).toEqual([401, 'M_UNAUTHORIZED'])
    const older = await post('/account/3pid', { three_pid_creds: creds })
    expect([older.status, older.body.errcode]).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    // None of it ended the client's own session.
    expect((await api.request('GET', '/account/whoami', { token: alice.token })).status).toBe(200)
  })

  it('is not called when it is not trusted', async () => {
    serviceFront.requests.length = 0
    for (const name of [
      `127.0.0.1:${serviceFront.port}`,
      `LOCALHOST.:${serviceFront.port}`,
      'localhost',
      '169.254.169.254',
    ]) {
      const { status, body } = await post('/account/3pid/bind', {
        sid: 'x',
        client_secret: 'x',
        id_access_token: 'x',
        id_server: name,
      })
      expect(status, name).toBe(400)
      expect(['M_SERVER_NOT_TRUSTED', 'M_INVALID_PARAM'], name).toContain(body.errcode)
    }
    expect(serviceFront.requests).toEqual([])
  })

  it('is trusted, and nothing listens there: 502 M_UNKNOWN', async () => {
    const creds = { sid: 'x', client_secret: 'x', id_access_token: 'x', id_server: 'localhost:1' }
    const { status, body } = await post('/account/3pid/bind', creds)
    expect([status, body.errcode]).toEqual([502, 'M_UNKNOWN'])
  })

  it('is away when an address is deleted: "no-support", the address is gone, and what is bound can still be ended later', async () => {
    await post('/account/3pid/bind', await credentials())
    await service.kill('SIGKILL')
    expect((await post('/account/3pid/delete', named())).body).toEqual({ id_server_unbind_result: 'no-support' })
    await service.start()
    expect(await lookedUp()).toBe(alice.userId)
    const users = await home.database.db.query<{ user_nid: number }>(
      'SELECT user_nid FROM matrix_user WHERE user_id = $1',
      [alice.userId],
    )
    expect(await home.services.contacts.removeAll(users[0]?.user_nid as number)).toBe('success')
    expect(await lookedUp()).toBeUndefined()
  })

  it('finds whom to invite by address, and keeps an invitation for an address that nobody has bound', async () => {
    const bob = await register(api, `bob${counter}`)
    const room = await createRoom(api, bob.token)
    const invite = { ...named(), id_server: idServer, id_access_token: await identityToken(bob) }
    const path = `/rooms/${encodeURIComponent(room)}/invite`
    expect((await post(path, invite, bob)).status).toBe(200)
    const state = await api.call('GET', `/rooms/${encodeURIComponent(room)}/state`, { token: bob.token })
    const kept = state.find(({ type }: { type: string }) => type === 'm.room.third_party_invite')
    expect(kept.content).toMatchObject({
      display_name: 'r...@e...',
      public_key: expect.any(String),
      key_validity_url: `https://${idServer}/_matrix/identity/v2/pubkey/isvalid`,
    })
    // Its owner binds the address through this homeserver, and is invited.
    await post('/account/3pid/bind', await credentials())
    const invited = async (id: string) =>
      (await api.call('GET', syncPath({}), { token: alice.token })).rooms?.invite?.[id]
    await waitUntil('the invitation', () => invited(room))
    // By now the address is known: the next invitation is an ordinary one.
    const second = await createRoom(api, bob.token)
    expect((await post(`/rooms/${encodeURIComponent(second)}/invite`, invite, bob)).status).toBe(200)
    expect(await invited(second)).toBeDefined()
  })
})

const outcome = ({ status, body }: { status: number; body: { errcode?: string } }) => [status, body.errcode]
const place = () => ({ id_server: idServer, id_access_token: token })
let attempts = 0
/** Asks this homeserver for a token that the identity server sends. */
const ask = (path: string, change: object = {}) =>
  api.request('POST', `/${path}/email/requestToken`, {
    body: { client_secret: `delegated.${attempts++}`, email, send_attempt: 1, ...place(), ...change },
  })
/** A session that the identity server has validated. */
async function delegated(path: string): Promise<{ sid: string; client_secret: string }> {
  const client_secret = `validated.${attempts++}`
  const { status, body } = await ask(path, { client_secret })
  expect(status).toBe(200)
  const mailed = /[?&]token=([\w-]+)/.exec(decodeQuotedPrintable(smtp.mails.at(-1)?.raw ?? ''))?.[1]
  const proof = { sid: body.sid, client_secret }
  await identity.ask('POST', '/validate/email/submitToken', { token, body: { ...proof, token: mailed } })
  return proof
}
const password = ({ userId }: Account) => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user: userId },
  password: PASSWORD,
})
const add = (proof: object, by = alice) => post('/account/3pid/add', { ...proof, auth: password(by) }, by)
const signUp = (proof: object, username: string) =>
  api.request('POST', '/register', {
    body: { username, password: PASSWORD, auth: { type: 'm.login.email.identity', threepid_creds: proof } },
  })
const addresses = async (by: Account) =>
  (await api.call('GET', '/account/3pid', { token: by.token })).threepids.map(
    ({ address }: { address: string }) => address,
  )

describe('seed 2, id_server where identity servers validate addresses for the homeserver', () => {
  it.each(['register', 'account/3pid', 'account/password'])(
    '%s: 200 {sid} of the identity server, which sends the mail',
    async (path) => {
      if (path === 'account/password') expect((await add(await delegated('account/3pid'))).status).toBe(200)
      smtp.mails.length = 0
      const { status, body } = await ask(path)
      expect({ status, body }).toEqual({
        status: 200,
        body: { sid: expect.stringMatching(/^[0-9a-zA-Z.=_-]{1,255}$/) },
      })
      expect(smtp.mails.map(({ to }) => to)).toEqual([[email.toLowerCase()]])
    },
  )

  it('refuses what it must: 400 M_SERVER_NOT_TRUSTED, M_MISSING_PARAM without a token, and passes on what the identity server says', async () => {
    smtp.mails.length = 0
    expect(outcome(await ask('register', { id_server: 'evil.example' }))).toEqual([400, 'M_SERVER_NOT_TRUSTED'])
    expect(outcome(await ask('register', { id_access_token: undefined }))).toEqual([400, 'M_MISSING_PARAM'])
    expect(outcome(await ask('register', { id_server: undefined }))).toEqual([400, 'M_MISSING_PARAM'])
    expect(outcome(await ask('register', { id_access_token: 'wrong' }))).toEqual([401, 'M_UNAUTHORIZED'])
    expect(outcome(await ask('register', { email: 'nobody' }))).toEqual([400, 'M_INVALID_PARAM'])
    expect(outcome(await ask('account/password'))).toEqual([400, 'M_THREEPID_NOT_FOUND'])
    expect(smtp.mails).toEqual([])
    const number = { client_secret: `n${attempts++}`, country: 'GB', phone_number: '07400 123456', send_attempt: 1 }
    const byNumber = (change: object) =>
      api.request('POST', '/register/msisdn/requestToken', { body: { ...number, ...change } })
    expect(outcome(await byNumber({}))).toEqual([403, 'M_THREEPID_DENIED'])
    const added = await api.request('POST', '/account/3pid/msisdn/requestToken', { body: number })
    expect(outcome(added)).toEqual([400, 'M_THREEPID_MEDIUM_NOT_SUPPORTED'])
    const begun = await byNumber(place())
    expect([begun.status, begun.body]).toEqual([200, expect.objectContaining({ msisdn: '447400123456' })])
    expect(begun.body.submit_url).toBeUndefined()
  })

  it('adds an address that was validated there, once', async () => {
    const proof = await delegated('account/3pid')
    expect((await add(proof)).status).toBe(200)
    expect(await addresses(alice)).toEqual([email.toLowerCase()])
    const other = await register(api, `other${counter}`)
    expect(outcome(await add(proof, other))).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    expect(outcome(await ask('account/3pid'))).toEqual([400, 'M_THREEPID_IN_USE'])
  })

  it('registers by m.login.email.identity with id_server in threepid_creds, or without', async () => {
    const proof = await delegated('register')
    const made = await signUp({ ...proof, ...place() }, `mailed${counter}`)
    expect(made.status).toBe(200)
    expect(await addresses({ ...alice, token: made.body.access_token })).toEqual([email.toLowerCase()])
    email = `second${email}`
    expect((await signUp(await delegated('register'), `again${counter}`)).status).toBe(200)
  })

  it('sets a password by an address that was shown there', async () => {
    await add(await delegated('account/3pid'))
    const proof = await delegated('account/password')
    const auth = { type: 'm.login.email.identity', threepid_creds: { ...proof, ...place() } }
    const body = { new_password: 'quite another password', auth }
    expect((await api.request('POST', '/account/password', { body })).status).toBe(200)
    const identifier = { type: 'm.id.user', user: alice.userId }
    const login = { type: 'm.login.password', identifier, password: body.new_password }
    expect((await api.request('POST', '/login', { body: login })).status).toBe(200)
  })

  it('a session is bound to what it was begun for: purpose, server, secret, and to having gone through here', async () => {
    const forAdding = await delegated('account/3pid')
    expect((await signUp({ ...forAdding, ...place() }, `bound${counter}`)).body.errcode).toBe('M_THREEPID_AUTH_FAILED')
    const proof = await delegated('register')
    const wrongs = [
      { ...proof, ...place(), id_server: 'localhost:1' },
      { ...proof, ...place(), client_secret: 'other' },
      { ...(await requested()), ...place() },
    ]
    for (const [index, wrong] of wrongs.entries()) {
      const { status, body } = await signUp(wrong, `bound${counter}`)
      expect([index, status, body.errcode]).toEqual([index, 401, 'M_THREEPID_AUTH_FAILED'])
    }
    const { body } = await ask('register', { client_secret: 'unconfirmed' })
    const pending = await signUp({ sid: body.sid, client_secret: 'unconfirmed', ...place() }, `bound${counter}`)
    expect(outcome(pending)).toEqual([401, 'M_UNAUTHORIZED'])
  })

  it('keeps no token of its users in clear', async () => {
    await delegated('register')
    const rows = await home.database.db.query<{ token: Buffer }>('SELECT token FROM delegated_session')
    expect(rows.length).toBeGreaterThan(0)
    for (const row of rows) expect(row.token.includes(token)).toBe(false)
  })
})
