import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ServerName } from '../../src/core/ids.ts'
import { type Signatures, signJson } from '../../src/core/signing/json-signature.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { type Account, type Api, createRoom, openApi, register, syncPath } from '../support/api.ts'
import { type Authority, createAuthority } from '../support/certificate.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { decodeQuotedPrintable, type SmtpSink, startSmtp } from '../support/smtp.ts'
import { json, proxyTo, startTlsServer, type TlsServer } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'
import { type Answer, type IdentityApi, openIdentity, P2 } from './identity-api.ts'

/** A Hearth behind a proxy that does TLS, as others see it. */
interface House {
  readonly name: ServerName
  readonly front: TlsServer
  readonly server: TestServer
  readonly api: Api
  readonly signingKey: SigningKey
}

const ADDRESS = 'Alice@Example.org'

let authority: Authority
let smtp: SmtpSink
let home: House
let service: House
let identity: IdentityApi
let alice: Account
let identityToken: string

beforeAll(async () => {
  authority = createAuthority()
  smtp = await startSmtp({ hideSTARTTLS: true })
  home = await openHouse()
  service = await openHouse()
  identity = openIdentity(service.server.baseUrl)
  alice = await register(home.api, 'alice')
})

afterAll(async () => {
  for (const { api, server, front } of [home, service]) {
    await api.close()
    await server.close()
    await front.close()
  }
  await smtp.close()
  authority.remove()
})

async function openHouse(): Promise<House> {
  const front = await startTlsServer(authority.issue(['localhost']), json({}, 503))
  const name = `localhost:${front.port}` as ServerName
  const signingKey = signingKeyFromSeed('ed25519:home', randomBytes(32))
  const mail = { from: 'id@hearth.test', smtp: { host: '127.0.0.1', port: smtp.port, security: 'none' as const } }
  const server = await startServer(
    { server_name: name, outbound: { ca_file: authority.file }, identity: { mail } },
    { signingKey },
  )
  front.handler = proxyTo(server.baseUrl)
  return { name, front, server, api: openApi(server.baseUrl), signingKey }
}

/** The user's proof towards the identity service that she is who she is at home. */
async function openIdToken({ userId, token }: Account = alice): Promise<object> {
  const path = `/user/${encodeURIComponent(userId)}/openid/request_token`
  return home.api.call('POST', path, { token, body: {} })
}

const registered = (body: object): Promise<Answer> =>
  identity.ask('POST', '/_matrix/identity/v2/account/register', { body })

async function validated(client_secret: string): Promise<object> {
  const body = { client_secret, email: ADDRESS, send_attempt: 1 }
  const { sid } = (await identity.ask('POST', '/validate/email/requestToken', { token: identityToken, body })).body
  const mail = await waitUntil('the mail', () => smtp.mails.at(-1)?.raw)
  const token = /[?&]token=([\w-]+)/.exec(decodeQuotedPrintable(mail))?.[1]
  const proof = { sid, client_secret }
  const answer = await identity.ask('POST', '/validate/email/submitToken', {
    token: identityToken,
    body: { ...proof, token },
  })
  expect(answer.body).toEqual({ success: true })
  return proof
}

async function isBound(): Promise<boolean> {
  const { lookup_pepper } = (await identity.ask('GET', '/hash_details', { token: identityToken })).body
  const body = { addresses: [`${ADDRESS.toLowerCase()} email`], algorithm: 'none', pepper: lookup_pepper }
  const { mappings } = (await identity.ask('POST', '/lookup', { token: identityToken, body })).body
  return Object.values(mappings).includes(alice.userId)
}

/** What a homeserver sends to end the binding of its user. */
function signedUnbind(key: SigningKey): Promise<Answer> {
  const content = { mxid: alice.userId, threepid: { medium: 'email', address: ADDRESS.toLowerCase() } }
  const path = `${P2}/3pid/unbind`
  const object = { method: 'POST', uri: path, origin: home.name, destination: service.name, content }
  const { signatures } = signJson(object, home.name, key) as { signatures: Signatures }
  const sig = signatures[home.name]?.[key.keyId]
  const authorization = `X-Matrix origin="${home.name}",destination="${service.name}",key="${key.keyId}",sig="${sig}"`
  return identity.ask('POST', path, { body: content, headers: { authorization } })
}

test("facts 19: another homeserver's OpenID token registers with the identity service", async () => {
  const answer = await registered(await openIdToken())
  expect(answer).toMatchObject({ status: 200, body: { token: expect.any(String) } })
  identityToken = answer.body.token
  expect((await identity.ask('GET', '/account', { token: identityToken })).body).toEqual({ user_id: alice.userId })
  expect(home.front.requests.map(({ url }) => url.split('?')[0])).toEqual(['/_matrix/federation/v1/openid/userinfo'])
})

test('a token that the homeserver does not know registers nobody', async () => {
  const token = { ...(await openIdToken()), access_token: 'made-up' }
  expect(await registered(token)).toMatchObject({ status: 401, body: { errcode: 'M_UNAUTHORIZED' } })
})

test('security row 101: a homeserver speaks for its own users alone', async () => {
  home.front.handler = json({ sub: `@mallory:${service.name}` })
  expect(await registered(await openIdToken())).toMatchObject({ status: 401, body: { errcode: 'M_UNAUTHORIZED' } })
  home.front.handler = proxyTo(home.server.baseUrl)
})

test('facts S2: homeservers on addresses that are not open are not asked', async () => {
  for (const matrix_server_name of ['10.0.0.1', '[::1]:8448', '169.254.169.254:80', '192.168.0.1:443']) {
    const answer = await registered({ ...(await openIdToken()), matrix_server_name })
    expect(answer, matrix_server_name).toMatchObject({ status: 502, body: { errcode: 'M_UNKNOWN' } })
  }
})

test('an invitation that waited for the address reaches the homeserver when it is bound, and the user’s sync', async () => {
  const bob = await register(home.api, 'bob')
  const room = await createRoom(home.api, bob.token)
  const invite = { medium: 'email', address: ADDRESS, room_id: room, sender: bob.userId }
  const { token: bobsToken } = (await registered(await openIdToken(bob))).body
  const storeInvite = '/_matrix/identity/v2/store-invite'
  const { token, ...content } = (await identity.ask('POST', storeInvite, { token: bobsToken, body: invite })).body
  const path = `/rooms/${encodeURIComponent(room)}/state/m.room.third_party_invite/${encodeURIComponent(token)}`
  await home.api.call('PUT', path, { token: bob.token, body: content })

  home.front.requests.length = 0
  const proof = await validated('bind-secret')
  const bound = await identity.ask('POST', '/3pid/bind', {
    token: identityToken,
    body: { ...proof, mxid: alice.userId },
  })
  expect(bound.status).toBe(200)
  const invitation = await waitUntil('the invitation', async () => {
    const body = await home.api.call('GET', syncPath({}), { token: alice.token })
    return body.rooms?.invite?.[room]
  })
  const member = invitation.invite_state.events.find((event: { state_key: string }) => event.state_key === alice.userId)
  expect(member.content).toMatchObject({
    membership: 'invite',
    third_party_invite: { signed: { mxid: alice.userId, token } },
  })
  const [request] = home.front.requests.filter(({ url }) => url.endsWith('/3pid/onbind'))
  expect(request).toMatchObject({ method: 'PUT', url: '/_matrix/federation/v1/3pid/onbind' })
})

test('facts 17: the homeserver of a user ends a binding by its signature, and nobody else does', async () => {
  expect(await isBound()).toBe(true)
  home.front.requests.length = 0
  const stranger = signingKeyFromSeed(home.signingKey.keyId, randomBytes(32))
  expect(await signedUnbind(stranger)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
  expect(await isBound()).toBe(true)
  expect(await signedUnbind(home.signingKey)).toMatchObject({ status: 200, body: {} })
  expect(await isBound()).toBe(false)
  expect(home.front.requests.map(({ url }) => url)).toEqual(['/_matrix/key/v2/server'])
})

test('the keys of a server are published in both dialects, and by the old path', async () => {
  for (const path of ['/_matrix/key/v2/server', '/_proto/key/v2/server', '/_matrix/key/v2/server/ed25519:home']) {
    const answer = await home.api.call('GET', path)
    expect(answer).toMatchObject({
      server_name: home.name,
      verify_keys: { 'ed25519:home': { key: home.signingKey.publicKey } },
      old_verify_keys: {},
    })
  }
})
