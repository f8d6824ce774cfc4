import { generateKeyPairSync } from 'node:crypto'
import { type JWTPayload, SignJWT } from 'jose'
import { afterAll, describe, expect, it } from 'vitest'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { type Api, openApi, PASSWORD, register } from '../support/api.ts'

const SECRET = 'a secret of thirty-two characters.'
const NOW = () => Math.floor(Date.now() / 1000)

const opened: { server: AccountServer; api: Api }[] = []
afterAll(async () => {
  for (const { api, server } of opened) {
    await api.close()
    await server.close()
  }
})

async function open(jwt: object = {}): Promise<Api> {
  const server = await startAccountServer({ jwt: { secret: SECRET, ...jwt } })
  opened.push({ server, api: openApi(server.baseUrl) })
  return opened.at(-1)!.api
}

const tokenOf = (claims: JWTPayload, alg = 'HS256', key: Parameters<SignJWT['sign']>[0] = Buffer.from(SECRET)) =>
  new SignJWT(claims).setProtectedHeader({ alg }).sign(key)
const enter = (api: Api, token: string, type = 'org.matrix.login.jwt') =>
  api.request('POST', '/login', { body: { type, token } })
const refused = { status: 403, body: { errcode: 'M_FORBIDDEN' } }

describe('a token of a service of the operator', () => {
  it('signs in whom it names, in both spellings, and is announced', async () => {
    const api = await open({ display_name_claim: 'name' })
    expect((await api.call('GET', '/login')).flows).toContainEqual({ type: 'org.matrix.login.jwt' })
    const token = await tokenOf({ sub: 'alice', name: 'Alice', exp: NOW() + 60 })
    const first = await enter(api, token)
    expect(first).toMatchObject({ status: 200, body: { user_id: '@alice:localhost' } })
    expect((await enter(api, token, 'm.login.jwt')).body.user_id).toBe('@alice:localhost')
    const profile = await api.call('GET', `/profile/${encodeURIComponent('@alice:localhost')}`, {
      token: first.body.access_token,
    })
    expect(profile.displayname).toBe('Alice')
  })

  it('signs in the same person twice at once, by whatever display name', async () => {
    const api = await open({ display_name_claim: 'name' })
    const token = await tokenOf({ sub: 'alice', name: `A\0lice ${'x'.repeat(5_000)}` })
    const both = await Promise.all([enter(api, token), enter(api, token), enter(api, token)])
    for (const { body } of both) expect(body.user_id).toBe('@alice:localhost')
  })

  it('is refused when it is not good', async () => {
    const api = await open({ issuer: 'us', audiences: ['here', 'there'] })
    const good = { sub: 'alice', iss: 'us', aud: 'there', exp: NOW() + 60 }
    expect((await enter(api, await tokenOf(good))).status).toBe(200)
    const { sub: _, ...nobody } = good
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(good)).toString('base64url')}.`
    const bad = [
      await tokenOf(good, 'HS256', Buffer.from('another secret of thirty-two chars')),
      await tokenOf(good, 'HS512'),
      await tokenOf({ ...good, exp: NOW() - 60 }),
      await tokenOf({ ...good, nbf: NOW() + 600 }),
      await tokenOf({ ...good, iss: 'them' }),
      await tokenOf({ ...good, aud: 'elsewhere' }),
      await tokenOf(nobody),
      await tokenOf({ ...good, sub: 'not a name!' }),
      await tokenOf({ ...good, sub: '@eve:elsewhere.org' }),
      await tokenOf({ ...good, sub: 'x\0y' }),
      unsigned,
      'nonsense',
      '',
      'x'.repeat(20_000),
    ]
    for (const token of bad)
      expect([token.slice(0, 20), await enter(api, token)]).toMatchObject([token.slice(0, 20), refused])
    expect((await api.request('POST', '/login', { body: { type: 'org.matrix.login.jwt' } })).body.errcode).toBe(
      'M_MISSING_PARAM',
    )
  })

  it('may be signed by a key of its service', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const secret = publicKey.export({ type: 'spki', format: 'pem' }) as string
    const api = await open({ algorithm: 'EdDSA', secret })
    expect((await enter(api, await tokenOf({ sub: 'alice' }, 'EdDSA', privateKey))).status).toBe(200)
    // The public key as a shared secret: an old mistake.
    expect(await enter(api, await tokenOf({ sub: 'alice' }, 'HS256', Buffer.from(secret)))).toMatchObject(refused)
  })

  it('takes no account of another, and makes none where operators say so', async () => {
    const api = await open()
    await register(api, 'carol')
    expect(await enter(api, await tokenOf({ sub: 'carol' }))).toMatchObject(refused)
    const same = await open({ allow_existing_users: true })
    const carol = await register(same, 'carol')
    expect((await enter(same, await tokenOf({ sub: 'carol' }))).body.user_id).toBe(carol.userId)
    const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'carol' }, password: PASSWORD }
    await same.call('POST', '/account/deactivate', { token: carol.token, body: { auth } })
    expect((await enter(same, await tokenOf({ sub: 'carol' }))).body.errcode).toBe('M_USER_DEACTIVATED')
    const closed = await open({ allow_registration: false })
    expect(await enter(closed, await tokenOf({ sub: 'dan' }))).toMatchObject(refused)
  })

  it('is of an unknown type where there is no secret', async () => {
    const server = await startAccountServer()
    const api = openApi(server.baseUrl)
    opened.push({ server, api })
    expect((await enter(api, await tokenOf({ sub: 'alice' }))).body.errcode).toBe('M_UNKNOWN')
    expect(JSON.stringify(await api.call('GET', '/login'))).not.toContain('jwt')
  })
})
