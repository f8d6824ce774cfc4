import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { expandPath } from '../../../src/core/paths.ts'
import { type Signatures, signJson, verifyJson } from '../../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { readXMatrix } from '../../../src/core/signing/x-matrix.ts'
import { identityEndpoints } from '../../../src/routes/identity/index.ts'
import type { Answer } from '../identity-api.ts'
import { P1, P2 } from '../identity-api.ts'
import { type People, startPeople } from '../people.ts'

const HOUR = 3_600_000
const hsKey = signingKeyFromSeed('ed25519:a_1', randomBytes(32))
const evilKey = signingKeyFromSeed('ed25519:e', randomBytes(32))
const VALID = { validUntilTs: Number.MAX_SAFE_INTEGER }
const KEYS: Readonly<Record<string, typeof hsKey>> = { 'hs.test': hsKey, 'evil.test': evilKey }
const expired = new Set<string>()

let people: People
let counter = 0
let userId: string
let email: string

beforeAll(async () => {
  people = await startPeople(
    {},
    {
      serverKeys: {
        async keysOf(server) {
          const key = KEYS[server]
          return key ? [{ ...key, ...(expired.has(server) ? { validUntilTs: 0 } : VALID) }] : []
        },
      },
    },
  )
})

afterAll(() => people.close())

beforeEach(() => {
  counter++
  userId = `@user${counter}:hs.test`
  email = `user${counter}@example.org`
})

const outcome = ({ status, body }: Answer) => [status, body.errcode]
const post = async (path: string, body: object, by: string | undefined = userId, headers = {}) =>
  people.identity.ask('POST', path, { token: by && (await people.tokenOf(by)), body, headers })
const lookedUp = async (address = email, medium = 'email') =>
  (await people.identity.ask('GET', `${P1}/lookup?${new URLSearchParams({ medium, address })}`)).body

describe('seed 1, POST P2/3pid/bind', () => {
  it('200 with a signed association, which later lookups return', async () => {
    const before = Date.now()
    const { status, body } = await people.bind(email, userId)
    expect(status).toBe(200)
    expect(body).toEqual({
      address: email,
      medium: 'email',
      mxid: userId,
      ts: expect.any(Number),
      not_before: body.ts,
      // facts 15: the specification's example.
      not_after: body.ts + (4582425849161 - 1428825849161),
      signatures: { localhost: { 'ed25519:0': expect.any(String) } },
    })
    expect(body.ts).toBeGreaterThanOrEqual(before)
    const { body: key } = await people.identity.ask('GET', '/pubkey/ed25519:0')
    expect(verifyJson(body, 'localhost', 'ed25519:0', key.public_key)).toBe(true)
    expect(await lookedUp()).toEqual(body)
  })

  it('"States": validation alone publishes nothing', async () => {
    await people.validated(email, userId)
    expect(await lookedUp()).toEqual({})
  })

  it('400 M_SESSION_NOT_VALIDATED, 400 M_SESSION_EXPIRED, 404 M_NO_VALID_SESSION', async () => {
    const waiting = await people.requested(email, userId)
    expect(outcome(await post('/3pid/bind', { ...waiting, mxid: userId }))).toEqual([400, 'M_SESSION_NOT_VALIDATED'])
    const wrong = { ...waiting, client_secret: 'other', mxid: userId }
    expect(outcome(await post('/3pid/bind', wrong))).toEqual([404, 'M_NO_VALID_SESSION'])
    const proof = await people.validated(email, userId)
    people.server.advance(25 * HOUR)
    expect(outcome(await post('/3pid/bind', { ...proof, mxid: userId }))).toEqual([400, 'M_SESSION_EXPIRED'])
    expect(await lookedUp()).toEqual({})
  })

  it('facts 16: nobody binds to another user: 403 M_UNAUTHORIZED; in the first generation anybody does', async () => {
    const proof = await people.validated(email, userId)
    const body = { ...proof, mxid: '@victim:hs.test' }
    expect(outcome(await post('/3pid/bind', body))).toEqual([403, 'M_UNAUTHORIZED'])
    expect(outcome(await post(`${P1}/3pid/bind`, body, ''))).toEqual([200, undefined])
    expect(await lookedUp()).toMatchObject({ mxid: '@victim:hs.test' })
  })

  it('facts 16: a later bind replaces', async () => {
    await people.bind(email, userId)
    const other = `@other${counter}:hs.test`
    expect(await people.bind(email, other)).toMatchObject({ status: 200 })
    expect(await lookedUp()).toMatchObject({ mxid: other })
    const rows = await people.server.db.query('SELECT 1 FROM identity_binding WHERE address = $1', [email])
    expect(rows).toHaveLength(1)
  })

  it('facts 1: an address is bound and looked up in any case', async () => {
    await people.bind(`Strauß.${counter}@Example.com`, userId)
    expect(await lookedUp(`STRAUSS.${counter}@example.COM`)).toMatchObject({
      mxid: userId,
      address: `strauss.${counter}@example.com`,
    })
  })

  it('is also P2/bind, and takes forms', async () => {
    const proof = await people.validated(email, userId)
    expect(await post('/bind', { ...proof, mxid: userId })).toMatchObject({ status: 200, body: { mxid: userId } })
    const form = new URLSearchParams({ ...proof, mxid: userId })
    for (const path of [`${P2}/3pid/bind`, `${P1}/3pid/bind`]) {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const answer = await people.identity.ask('POST', path, {
        token: await people.tokenOf(userId),
        body: form,
        headers,
      })
      expect(answer).toMatchObject({ status: 200, body: { mxid: userId } })
    }
  })

  it.each([
    [{ mxid: 'alice' }, 'M_INVALID_PARAM'],
    [{ mxid: '@a:x y' }, 'M_INVALID_PARAM'],
    [{ mxid: `@${'a'.repeat(255)}:hs.test` }, 'M_INVALID_PARAM'],
    [{ mxid: 7 }, 'M_INVALID_PARAM'],
    [{ mxid: undefined }, 'M_MISSING_PARAMS'],
    [{ sid: undefined }, 'M_MISSING_PARAMS'],
    [{ client_secret: 'secret\n' }, 'M_INVALID_PARAM'],
    [{ sid: 'x'.repeat(256) }, 'M_INVALID_PARAM'],
  ])('facts S6: %j gives 400 %s', async (change, errcode) => {
    const body = { sid: 'x', client_secret: 'x', mxid: userId, ...change }
    expect(outcome(await post('/3pid/bind', body))).toEqual([400, errcode])
  })

  it('needs a token: 401 M_UNAUTHORIZED', async () => {
    expect(outcome(await post('/3pid/bind', { sid: 'x', client_secret: 'x', mxid: userId }, ''))).toEqual([
      401,
      'M_UNAUTHORIZED',
    ])
  })
})

describe('seed 1, POST P2/3pid/unbind by session', () => {
  const threepid = () => ({ medium: 'email', address: email })

  it.each([`${P2}/3pid/unbind`, `${P2}/unbind`, `${P1}/3pid/unbind`])(
    '%s: 200 {}, and lookups omit it',
    async (path) => {
      await people.bind(email, userId)
      const proof = await people.validated(email, userId)
      const body = { ...proof, mxid: userId, threepid: { medium: 'email', address: email.toUpperCase() } }
      expect(await post(path, body, path.startsWith(P1) ? '' : userId)).toMatchObject({ status: 200, body: {} })
      expect(await lookedUp()).toEqual({})
      // facts 18: once more is no error.
      expect(await post(path, body, path.startsWith(P1) ? '' : userId)).toMatchObject({ status: 200, body: {} })
    },
  )

  it('ends nothing that is bound to another user', async () => {
    await people.bind(email, userId)
    const proof = await people.validated(email, userId)
    await post('/3pid/unbind', { ...proof, mxid: '@other:hs.test', threepid: threepid() })
    expect(await lookedUp()).toMatchObject({ mxid: userId })
  })

  it('403 M_FORBIDDEN for a session about another address, an unvalidated one, a wrong secret, an expired one', async () => {
    await people.bind(email, userId)
    const body = { mxid: userId, threepid: threepid() }
    const unbind = async (proof: object) => outcome(await post('/3pid/unbind', { ...proof, ...body }))
    expect(await unbind(await people.validated(`x${email}`, userId))).toEqual([403, 'M_FORBIDDEN'])
    expect(await unbind(await people.requested(email, userId))).toEqual([403, 'M_FORBIDDEN'])
    const proof = await people.validated(email, userId)
    expect(await unbind({ ...proof, client_secret: 'wrong' })).toEqual([403, 'M_FORBIDDEN'])
    people.server.advance(25 * HOUR)
    expect(await unbind(proof)).toEqual([403, 'M_FORBIDDEN'])
    expect(await lookedUp()).toMatchObject({ mxid: userId })
  })

  it('facts 18: without a token, or without any proof: 401 M_UNAUTHORIZED; half a proof: 400 M_MISSING_PARAMS', async () => {
    const body = { mxid: userId, threepid: threepid() }
    const proof = await people.validated(email, userId)
    expect(outcome(await post('/3pid/unbind', { ...proof, ...body }, ''))).toEqual([401, 'M_UNAUTHORIZED'])
    expect(outcome(await post('/3pid/unbind', body))).toEqual([401, 'M_UNAUTHORIZED'])
    expect(outcome(await post(`${P1}/3pid/unbind`, body, ''))).toEqual([401, 'M_UNAUTHORIZED'])
    expect(outcome(await post('/3pid/unbind', { sid: 'x', ...body }))).toEqual([400, 'M_MISSING_PARAMS'])
    expect(outcome(await post('/3pid/unbind', { mxid: userId }))).toEqual([400, 'M_MISSING_PARAMS'])
  })
})

describe('seed 1, POST P2/3pid/unbind by the signature of a homeserver', () => {
  interface Signing {
    readonly origin?: string
    readonly destination?: object
    readonly said?: string
    readonly path?: string
    readonly key?: typeof hsKey
    readonly content?: object
  }

  async function signedUnbind(signing: Signing = {}): Promise<Answer> {
    const { origin = 'hs.test', destination = { destination_is: 'localhost' }, path = `${P2}/3pid/unbind` } = signing
    const content = { mxid: userId, threepid: { medium: 'email', address: email } }
    const key = signing.key ?? hsKey
    const object = { method: 'POST', uri: path, origin, content: signing.content ?? content, ...destination }
    const { signatures } = signJson(object as never, origin, key) as { signatures: Signatures }
    const said = signing.said === undefined ? '' : `,destination="${signing.said}"`
    const authorization = `X-Matrix origin=${origin},key="${key.keyId}",sig="${signatures[origin]?.[key.keyId]}"${said}`
    return people.identity.ask('POST', path, { body: content, headers: { authorization } })
  }

  beforeEach(async () => {
    expired.clear()
    await people.bind(email, userId)
  })

  it.each<[string, Signing]>([
    ['destination_is, the server name', {}],
    ['destination_is, the host in public', { destination: { destination_is: 'id.hearth.test' } }],
    ['destination, with the port', { destination: { destination: 'id.hearth.test:443' } }],
    ['destination, said in the header', { destination: { destination: 'localhost' }, said: 'localhost' }],
    ['the first generation', { path: `${P1}/3pid/unbind` }],
    ['the published root', { path: '/_matrix/identity/v2/3pid/unbind' }],
    ['the alias', { path: `${P2}/unbind` }],
  ])('facts 17: %s', async (_name, signing) => {
    expect(await signedUnbind(signing)).toMatchObject({ status: 200, body: {} })
    expect(await lookedUp()).toEqual({})
  })

  it.each<[string, Signing]>([
    ['for another service', { destination: { destination_is: 'other.test' } }],
    ['said to be for another service', { said: 'other.test' }],
    ['over another body', { content: { mxid: userId } }],
    ['with a key of another server', { key: evilKey }],
    ['by a server that does not have the user', { origin: 'evil.test', key: evilKey }],
    ['by a server without keys', { origin: 'unknown.test' }],
    ['without a destination', { destination: {} }],
  ])('facts 17: a signature %s gives 403 M_FORBIDDEN', async (_name, signing) => {
    expect(outcome(await signedUnbind(signing))).toEqual([403, 'M_FORBIDDEN'])
    expect(await lookedUp()).toMatchObject({ mxid: userId })
  })

  it('facts S17: the server of a user is what follows the first colon', async () => {
    const content = { mxid: '@a:x:evil.test', threepid: { medium: 'email', address: email } }
    const object = { method: 'POST', uri: `${P2}/3pid/unbind`, origin: 'evil.test', content, destination: 'localhost' }
    const { signatures } = signJson(object, 'evil.test', evilKey)
    const authorization = `X-Matrix origin="evil.test",key="ed25519:e",sig="${signatures['evil.test']?.['ed25519:e']}"`
    const answer = await people.identity.ask('POST', '/3pid/unbind', { body: content, headers: { authorization } })
    expect([400, 403]).toContain(answer.status)
  })

  it('facts S17: a key that has expired signs nothing', async () => {
    expired.add('hs.test')
    expect(outcome(await signedUnbind())).toEqual([403, 'M_FORBIDDEN'])
  })

  it.each([
    'X-Matrix',
    'X-Matrix ',
    'X-Matrix origin=hs.test',
    'X-Matrix origin="hs.test,key="a",sig="b"',
    'x-matrix a b',
  ])('the header %j gives 403 M_FORBIDDEN or 401 M_UNAUTHORIZED', async (authorization) => {
    const body = { mxid: userId, threepid: { medium: 'email', address: email } }
    const { status } = await people.identity.ask('POST', '/3pid/unbind', { body, headers: { authorization } })
    expect([401, 403]).toContain(status)
    expect(await lookedUp()).toMatchObject({ mxid: userId })
  })

  it('the header is read with spaces, quotes, escapes and names that are not known', () => {
    const header = 'X-Matrix  Origin = "hs.test" , key=ed25519:a,sig="a\\"b", new="1", destination=localhost'
    expect(readXMatrix(header)).toEqual({
      origin: 'hs.test',
      keyId: 'ed25519:a',
      signature: 'a"b',
      destination: 'localhost',
    })
    expect(readXMatrix('X-Matrix origin=a.test,origin=b.test,key=k,sig=s')).toBeUndefined()
    expect(readXMatrix('Bearer abc')).toBeUndefined()
  })
})

describe('seed 1, "What the service does" 5: from a user nobody gets to an identifier', () => {
  it('no operation that is told a user answers with an address of theirs', async () => {
    await people.bind(email, userId)
    await people.bind(`second-${email}`, userId)
    const token = await people.tokenOf('@stranger:hs.test')
    const named = {
      mxid: userId,
      user_id: userId,
      userId,
      sender: userId,
      user: userId,
      address: userId,
      public_key: userId,
    }
    const pairs = {
      threepids: [
        ['email', userId],
        ['mxid', userId],
      ],
      addresses: [userId, `${userId} mxid`, `${userId} email`],
    }
    const { body: details } = await people.identity.ask('GET', '/hash_details', { token })
    const asked = {
      ...named,
      ...pairs,
      algorithm: 'none',
      pepper: details.lookup_pepper,
      medium: 'mxid',
      sid: 'x',
      client_secret: 'x',
    }
    let answers = 0
    for (const { method, path, options } of identityEndpoints) {
      for (const line of [path, ...(options.also ?? [])]) {
        for (const { path: url } of expandPath(line)) {
          const query = new URLSearchParams({ ...named, medium: 'mxid', sid: 'x', client_secret: 'x', token: 'x' })
          const target = `${url.replace(/:\w+/g, encodeURIComponent(userId))}?${query}`
          if (path.endsWith('/logout')) continue
          const { status, body } = await people.identity.ask(method, target, {
            token,
            ...(method === 'POST' && { body: asked }),
          })
          expect(status).toBeLessThan(500)
          expect(JSON.stringify(body), `${method} ${url}`).not.toContain(email)
          answers++
        }
      }
    }
    expect(answers).toBeGreaterThan(60)
  })

  it('and none names another identifier of whoever has an identifier', async () => {
    await people.bind(email, userId)
    await people.bind(`second-${email}`, userId)
    expect(JSON.stringify(await lookedUp())).not.toContain('second-')
  })

  it('not even the database has an index for it', async () => {
    const rows = await people.server.db.query<{ indexdef: string }>(
      `SELECT indexdef FROM pg_indexes WHERE tablename = 'identity_binding'`,
    )
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.filter(({ indexdef }) => indexdef.includes('user_id'))).toEqual([])
  })
})
