import { generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
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

/** Good for a minute, unless the claims say otherwise. */
const tokenOf = (
  claims: { [claim: string]: unknown },
  alg = 'HS256',
  key: Parameters<SignJWT['sign']>[0] = Buffer.from(SECRET),
) => new SignJWT({ exp: NOW() + 60, ...claims }).setProtectedHeader({ alg }).sign(key)
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

  it('is good for a time only, as it says itself or the operator', async () => {
    const api = await open()
    const endless = await enter(api, await tokenOf({ sub: 'alice', exp: undefined }))
    expect(endless).toMatchObject(refused)
    expect(endless.body.error).toContain('exp')
    const aged = await open({ max_age_seconds: 300 })
    expect((await enter(aged, await tokenOf({ sub: 'alice', exp: undefined, iat: NOW() - 200 }))).status).toBe(200)
    for (const claims of [
      { iat: NOW() - 400, exp: NOW() + 60 },
      { exp: NOW() + 60 },
      { iat: NOW() - 200, exp: NOW() - 100 },
      { iat: NOW() + 600, exp: NOW() + 900 },
    ]) {
      expect([claims, await enter(aged, await tokenOf({ sub: 'alice', ...claims }))]).toMatchObject([claims, refused])
    }
  })

  it('proves again who somebody is, if it was made just now', async () => {
    const api = await open()
    const { access_token: token } = (await enter(api, await tokenOf({ sub: 'alice' }))).body
    const { device_id: other } = (await enter(api, await tokenOf({ sub: 'alice' }))).body
    await enter(api, await tokenOf({ sub: 'bob' }))
    const remove = (auth?: object) =>
      api.request('DELETE', `/devices/${other}`, { token, body: { ...(auth && { auth }) } })
    const { flows, session } = (await remove()).body
    expect(flows).toEqual([{ stages: ['org.matrix.login.jwt'] }])
    const proof = async (claims: { [claim: string]: unknown }) =>
      remove({ type: 'org.matrix.login.jwt', session, token: await tokenOf(claims) })
    for (const claims of [
      { sub: 'alice' },
      { sub: 'alice', iat: NOW() - 700, exp: NOW() + 600 },
      { sub: 'bob', iat: NOW() },
      { sub: 'nobody-yet', iat: NOW() },
    ]) {
      expect([claims, await proof(claims)]).toMatchObject([claims, { status: 401, body: { errcode: 'M_FORBIDDEN' } }])
    }
    expect((await remove({ type: 'org.matrix.login.jwt', session })).status).toBe(401)
    expect((await remove({ type: 'm.login.password', session, password: '' })).status).toBe(401)
    expect((await proof({ sub: 'alice', iat: NOW() })).status).toBe(200)
    const [{ count }] = (await opened
      .at(-1)!
      .server.db.query<{ count: number }>(
        "SELECT count(*)::int AS count FROM matrix_user WHERE user_id = '@nobody-yet:localhost'",
        [],
      )) as [{ count: number }]
    expect(count).toBe(0)
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
