import './promise-with-resolvers.ts'
import { createClient, type MatrixClient } from 'matrix-js-sdk'
import { InteractiveAuth } from 'matrix-js-sdk/lib/interactive-auth.js'
import { logger } from 'matrix-js-sdk/lib/logger.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Api, type Json, openApi, PASSWORD } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { type SmtpSink, startSmtp } from '../support/smtp.ts'
import { waitUntil } from '../support/wait.ts'
import { followMail } from './contact-mails.ts'

const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {}, getChild: () => silent }
Object.assign(logger, silent)

const NEW_PASSWORD = 'another horse, another staple'

let smtp: SmtpSink
let server: TestServer

beforeAll(async () => {
  smtp = await startSmtp({ hideSTARTTLS: true })
  const mail = { from: 'hearth@hearth.test', smtp: { host: '127.0.0.1', port: smtp.port, security: 'none' as const } }
  server = await startServer({ registration: { email: 'required' }, identity: { mail } })
})
afterAll(async () => {
  await server.close()
  await smtp.close()
})

const follow = (to: string) => followMail(smtp, to, server.baseUrl)
const password = (user: string, secret: string) => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user },
  password: secret,
})

/** The code of what a call was refused with. */
async function refusal(call: Promise<unknown>): Promise<string | undefined> {
  try {
    await call
  } catch (error) {
    return (error as { errcode?: string }).errcode
  }
  throw new Error('the call was not refused')
}

test('matrix-js-sdk: from registration with email to deactivation', async () => {
  const { baseUrl } = server
  const entrance = createClient({ baseUrl, logger: silent })

  const registered = await registerWithEmail(entrance, 'dora', 'dora@example.org')
  expect(registered.user_id).toBe('@dora:localhost')
  const phone = await loggedIn('dora', PASSWORD)
  const laptop = await loggedIn('dora', PASSWORD)
  expect((await phone.getThreePids()).threepids.map(({ address }) => address)).toEqual(['dora@example.org'])

  await addAddress(phone, 'dora.second@example.org')
  await bindAndFind(phone, 'dora.public@example.org')
  await manageDevices(phone, laptop)

  await resetPassword(entrance, 'dora@example.org')
  // Whoever was logged in is not any more.
  expect(await refusal(phone.whoami())).toBe('M_UNKNOWN_TOKEN')
  expect(await refusal(loggedIn('dora', PASSWORD))).toBe('M_FORBIDDEN')

  const last = await loggedIn('dora', NEW_PASSWORD)
  await expect(last.deleteThreePid('email', 'dora.second@example.org')).resolves.toMatchObject({
    id_server_unbind_result: 'no-support',
  })
  const ended = await last.deactivateAccount(password('dora', NEW_PASSWORD))
  expect(ended).toEqual({ id_server_unbind_result: 'success' })
  expect(await refusal(loggedIn('dora', NEW_PASSWORD))).toMatch(/^M_(?:FORBIDDEN|USER_DEACTIVATED)$/)
  expect(await refusal(entrance.requestPasswordEmailToken('dora@example.org', 'gone', 1))).toBe('M_THREEPID_NOT_FOUND')
  expect(await publicOwner('dora.public@example.org')).toBeUndefined()
})

async function loggedIn(user: string, secret: string): Promise<MatrixClient> {
  const { baseUrl } = server
  const session = await createClient({ baseUrl, logger: silent }).loginRequest(password(user, secret))
  const { access_token: accessToken, user_id: userId, device_id: deviceId } = session
  return createClient({ baseUrl, logger: silent, accessToken, userId, deviceId, idBaseUrl: baseUrl })
}

/** The client's own machinery: it asks for the mail when the server wants it, and polls until the link was opened. */
async function registerWithEmail(client: MatrixClient, username: string, email: string): Promise<Json> {
  const auth = new InteractiveAuth<Json>({
    matrixClient: client,
    inputs: { emailAddress: email },
    doRequest: (data) => client.registerRequest({ username, password: PASSWORD, ...(data && { auth: data }) } as never),
    requestEmailToken: (address, secret, attempt) => client.requestRegisterEmailToken(address, secret, attempt),
    stateUpdated: () => {},
  })
  let registered: Json
  const done = auth.attemptAuth().then((answer) => {
    registered = answer
  })
  await waitUntil('the mail', () => smtp.mails.at(-1)?.to[0] === email)
  await auth.poll()
  expect(registered).toBeUndefined()
  await follow(email)
  await waitUntil('the account', () => auth.poll().then(() => registered))
  await done
  return registered
}

async function addAddress(client: MatrixClient, email: string): Promise<void> {
  const client_secret = client.generateClientSecret()
  const { sid } = await client.requestAdd3pidEmailToken(email, client_secret, 1)
  const auth = password(client.getSafeUserId(), PASSWORD)
  expect(await refusal(client.addThreePidOnly({ sid, client_secret, auth }))).toBe('M_THREEPID_AUTH_FAILED')
  await follow(email)
  await client.addThreePidOnly({ sid, client_secret, auth })
  expect((await client.getThreePids()).threepids.map(({ address }) => address)).toContain(email)
}

async function bindAndFind(client: MatrixClient, email: string): Promise<void> {
  const { access_token, token } = await client.registerWithIdentityServer(await client.getOpenIdToken())
  const id_access_token = token ?? access_token
  const client_secret = client.generateClientSecret()
  const { sid } = await client.requestEmailToken(email, client_secret, 1, undefined, id_access_token)
  await follow(email)
  await client.bindThreePid({ sid, client_secret, id_server: 'localhost', id_access_token })
  expect(await client.lookupThreePid('email', email, id_access_token)).toMatchObject({ mxid: client.getUserId() })
  expect(await publicOwner(email)).toBe(client.getUserId())
}

async function publicOwner(address: string): Promise<string | undefined> {
  const query = new URLSearchParams({ medium: 'email', address })
  return ((await (await fetch(`${server.baseUrl}/_matrix/identity/api/v1/lookup?${query}`)).json()) as Json).mxid
}

async function manageDevices(phone: MatrixClient, laptop: MatrixClient): Promise<void> {
  const other = laptop.getDeviceId() as string
  await phone.setDeviceDetails(other, { display_name: 'the old laptop' })
  const { devices } = await phone.getDevices()
  expect(devices.find(({ device_id }) => device_id === other)?.display_name).toBe('the old laptop')
  expect(await refusal(phone.deleteDevice(other, password('dora', 'wrong')))).toBe('M_FORBIDDEN')
  await phone.deleteDevice(other, password('dora', PASSWORD))
  expect(await refusal(laptop.whoami())).toBe('M_UNKNOWN_TOKEN')
}

async function resetPassword(client: MatrixClient, email: string): Promise<void> {
  const client_secret = client.generateClientSecret()
  const { sid } = await client.requestPasswordEmailToken(email, client_secret, 1)
  const auth = { type: 'm.login.email.identity', threepid_creds: { sid, client_secret } }
  expect(await refusal(client.setPassword(auth as never, NEW_PASSWORD, true))).toBe('M_UNAUTHORIZED')
  await follow(email)
  await client.setPassword(auth as never, NEW_PASSWORD, true)
  // A proof counts once.
  expect(await refusal(client.setPassword(auth as never, 'and a third one', true))).toBe('M_THREEPID_AUTH_FAILED')
}

test('the same in plain HTTP over /_proto/client/r0', async () => {
  const api = openApi(server.baseUrl, { prefix: '/_proto/client/r0' })
  try {
    await plainStory(api)
  } finally {
    await api.close()
  }
})

async function plainStory(api: Api): Promise<void> {
  const email = 'emil@example.org'
  const secret = 'emil.secret'
  const asked = { username: 'emil', password: PASSWORD }
  const { session, flows } = (await api.request('POST', '/register', { body: asked })).body
  expect(flows).toEqual([{ stages: ['m.login.email.identity'] }])
  const { sid } = await api.call('POST', '/register/email/requestToken', {
    body: { client_secret: secret, email, send_attempt: 1 },
  })
  const creds = { type: 'm.login.email.identity', session, threepid_creds: { sid, client_secret: secret } }
  const waiting = await api.request('POST', '/register', { body: { ...asked, auth: creds } })
  expect(waiting.status).toBe(401)
  await follow(email)
  await api.call('POST', '/register', { body: { ...asked, auth: { session } } })

  const login = (user: string, secretWord: string) =>
    api.request('POST', '/login', { body: password(user, secretWord) })
  const first = (await login('emil', PASSWORD)).body
  const token: string = first.access_token
  const other = (await login('emil', PASSWORD)).body
  const second = 'emil.second@example.org'
  await api.call('POST', '/account/3pid/add', {
    token,
    body: { ...(await proof(api, second)), auth: password('emil', PASSWORD) },
  })
  const { threepids } = await api.call('GET', '/account/3pid', { token })
  expect(threepids.map(({ address }: Json) => address)).toEqual([email, second])

  const openId = await api.call('POST', `/user/${encodeURIComponent('@emil:localhost')}/openid/request_token`, {
    token,
    body: {},
  })
  const identity = '/_proto/identity/v2'
  const id_access_token: string = (await api.call('POST', `${identity}/account/register`, { body: openId })).token
  const begun = { client_secret: 'bind.secret', email, send_attempt: 1 }
  const bound = await api.call('POST', `${identity}/validate/email/requestToken`, {
    token: id_access_token,
    body: begun,
  })
  await follow(email)
  const binding = { sid: bound.sid, client_secret: 'bind.secret', id_server: 'localhost', id_access_token }
  await api.call('POST', '/account/3pid/bind', { token, body: binding })
  expect(await publicOwner(email)).toBe('@emil:localhost')

  const { devices } = await api.call('GET', '/devices', { token })
  // That of the registration, and two of logins.
  expect(devices).toHaveLength(3)
  const device = `/devices/${other.device_id}`
  const challenge = await api.request('DELETE', device, { token, body: {} })
  const auth = { ...password('emil', PASSWORD), session: challenge.body.session }
  await api.call('DELETE', device, { token, body: { auth } })
  expect((await api.request('GET', '/account/whoami', { token: other.access_token })).body.errcode).toBe(
    'M_UNKNOWN_TOKEN',
  )

  const reset = { client_secret: 'reset.secret', email, send_attempt: 1 }
  const forgotten = await api.call('POST', '/account/password/email/requestToken', { body: reset })
  const change = { new_password: NEW_PASSWORD }
  const shown = { sid: forgotten.sid, client_secret: 'reset.secret' }
  const by = { type: 'm.login.email.identity', threepid_creds: shown }
  const early = await api.request('POST', '/account/password', { body: { ...change, auth: by } })
  expect(early.status).toBe(401)
  await follow(email)
  await api.call('POST', '/account/password', { body: { ...change, auth: { session: early.body.session } } })
  expect((await login('emil', PASSWORD)).body.errcode).toBe('M_FORBIDDEN')
  const again = (await login('emil', NEW_PASSWORD)).body.access_token

  const { session: last } = (await api.request('POST', '/account/deactivate', { token: again, body: {} })).body
  const body = { auth: { ...password('emil', NEW_PASSWORD), session: last } }
  expect(await api.call('POST', '/account/deactivate', { token: again, body })).toEqual({
    id_server_unbind_result: 'success',
  })
  expect(await publicOwner(email)).toBeUndefined()
  expect((await login('emil', NEW_PASSWORD)).status).toBe(403)
  const late = await api.request('POST', '/account/password/email/requestToken', {
    body: { ...reset, client_secret: 'late' },
  })
  expect(late.body.errcode).toBe('M_THREEPID_NOT_FOUND')
}

async function proof(api: Api, email: string): Promise<{ sid: string; client_secret: string }> {
  const client_secret = 'add.secret'
  const { sid } = await api.call('POST', '/account/3pid/email/requestToken', {
    body: { client_secret, email, send_attempt: 1 },
  })
  await follow(email)
  return { sid, client_secret }
}
