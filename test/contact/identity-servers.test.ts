import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { ProtocolError } from '../../src/core/errors.ts'
import type { ServerName, UserId } from '../../src/core/ids.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { createIdentityServers, type IdentityServers } from '../../src/domain/contact/identity-servers.ts'
import { createIdentityClient, type Requests } from '../../src/outbound/identity.ts'
import { type People, startPeople } from '../identity/people.ts'

const REMOTE = 'id.hearth.test'
const hsKey = signingKeyFromSeed('ed25519:hs', randomBytes(32))
const log = pino({ level: 'silent' })

let people: People
let counter = 0
let alice: UserId
let email: string
/** What the remote identity server is made to answer instead; undefined lets it speak. */
let instead: { status: number; body: string } | 'nothing' | undefined
const asked: string[] = []

/** What is in this process is not asked over HTTP. */
const nobody: Requests = { request: () => expect.unreachable('a request') }

/** Takes what is for `https://id.hearth.test` to the identity service of this process, over HTTP. */
const requests: Requests = {
  async request({ method, url, headers, body }) {
    asked.push(`${method} ${new URL(url).pathname}`)
    if (instead === 'nothing') return { ok: false, kind: 'timeout', detail: 'it took too long' }
    if (instead !== undefined) return { ok: true, status: instead.status, body: Buffer.from(instead.body) }
    if (!url.startsWith(`https://${REMOTE}/`)) return { ok: false, kind: 'dns', detail: 'no such host' }
    const target = people.server.baseUrl + url.slice(`https://${REMOTE}`.length)
    const answer = await fetch(target, { method, headers, body: body ?? null })
    return { ok: true, status: answer.status, body: Buffer.from(await answer.arrayBuffer()) }
  },
}

function servers(kind: 'own' | 'remote', dialect: 'auto' | 'proto' = 'auto'): IdentityServers {
  const { services } = people.server
  if (kind === 'own') {
    const config = { ...services.config, server_name: 'hs.test' as ServerName }
    const client = createIdentityClient(nobody, 'auto')
    return createIdentityServers({ config, identity: services.identity, client, signingKey: hsKey, log })
  }
  const values = { server_name: 'hs.test', roles: ['client'], identity_servers: { trusted: [REMOTE, 'dead.test'] } }
  const { config } = loadConfig({ values, directory: '/tmp' })
  const client = createIdentityClient(requests, dialect)
  return createIdentityServers({ config, identity: services.identity, client, signingKey: hsKey, log })
}

beforeAll(async () => {
  people = await startPeople(
    {
      terms: {
        policies: [{ id: 'privacy', version: '1', languages: [{ language: 'en', name: 'P', url: 'https://x.test/' }] }],
      },
    },
    { serverKeys: { keysOf: async () => [{ ...hsKey, validUntilTs: Number.MAX_SAFE_INTEGER }] } },
  )
})
afterAll(() => people.close())
beforeEach(() => {
  instead = undefined
  asked.length = 0
  counter++
  email = `alice${counter}@example.org`
})

async function tokenOf(userId: string): Promise<string> {
  const token = await people.tokenOf(userId)
  const body = { user_accepts: ['https://x.test/'] }
  await people.identity.ask('POST', '/terms', { token, body })
  return token
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no error',
    (error: unknown) => (error instanceof ProtocolError ? [error.status, error.toJSON().errcode] : String(error)),
  )

describe.each(['own', 'remote'] as const)('the identity server is %s', (kind) => {
  let ids: IdentityServers
  let token: string

  beforeEach(async () => {
    ids = servers(kind)
    alice = `@alice${counter}:hs.test` as UserId
    token = await tokenOf(alice)
  })

  it('bind, lookup, unbind', async () => {
    const { sid, client_secret: clientSecret } = await people.validated(email, alice)
    expect(await ids.getValidated3pid(REMOTE, token, { sid, clientSecret })).toMatchObject({
      medium: 'email',
      address: email,
    })
    expect(await ids.lookup(REMOTE, token, { medium: 'email', address: email })).toBeUndefined()
    expect(await ids.bind(REMOTE, token, { sid, clientSecret }, alice)).toEqual({ medium: 'email', address: email })
    expect(await ids.lookup(REMOTE, token, { medium: 'email', address: email.toUpperCase() })).toBe(alice)
    expect(await ids.unbind(REMOTE, { medium: 'email', address: email }, alice)).toBe('success')
    expect(await ids.lookup(REMOTE, token, { medium: 'email', address: email })).toBeUndefined()
    // Once more is no error.
    expect(await ids.unbind(REMOTE, { medium: 'email', address: email }, alice)).toBe('success')
  })

  it('an invitation, whose keys are valid where it says', async () => {
    const asking = { medium: 'email', address: email, room_id: '!r:hs.test', sender: alice }
    const invite = await ids.storeInvite(REMOTE, token, asking)
    expect(invite).toMatchObject({ token: expect.any(String), display_name: 'a...@e...' })
    expect(invite.public_keys).toHaveLength(2)
    for (const { public_key, key_validity_url = '' } of invite.public_keys) {
      expect(await ids.isKeyValid(key_validity_url, public_key)).toBe(true)
      expect(await ids.isKeyValid(key_validity_url, 'A'.repeat(43))).toBe(false)
    }
  })

  it('requestToken sends the mail that the identity server would', async () => {
    const before = people.smtp.mails.length
    const request = {
      clientSecret: 'abc',
      sendAttempt: 1,
      nextLink: undefined,
      dialect: 'matrix' as const,
      sender: 'x',
    }
    const look = { brand: undefined, languages: [] }
    const wish = { medium: 'email', email } as const
    expect(await ids.requestToken(REMOTE, token, wish, { ...request, look })).toEqual({ sid: expect.any(String) })
    expect(people.smtp.mails.slice(before).map(({ to }) => to)).toEqual([[email]])
  })

  it('errors are passed on: code and status', async () => {
    const { sid, client_secret: clientSecret } = await people.requested(email, alice)
    const bind = (accessToken: string, proof: { sid: string; clientSecret: string }, userId = alice) =>
      codeOf(ids.bind(REMOTE, accessToken, proof, userId))
    expect(await bind(token, { sid, clientSecret })).toEqual([400, 'M_SESSION_NOT_VALIDATED'])
    expect(await bind(token, { sid, clientSecret: 'wrong' })).toEqual([404, 'M_NO_VALID_SESSION'])
    expect(await bind('nonsense', { sid, clientSecret })).toEqual([401, 'M_UNAUTHORIZED'])
    expect(await bind(token, { sid, clientSecret }, `@mallory:hs.test` as UserId)).toEqual([403, 'M_UNAUTHORIZED'])
    const fresh = await people.tokenOf(`@fresh${counter}:hs.test`)
    expect(await codeOf(ids.lookup(REMOTE, fresh, { medium: 'email', address: email }))).toEqual([
      403,
      'M_TERMS_NOT_SIGNED',
    ])
  })

  it('storeInvite of a bound address: 400 M_THREEPID_IN_USE with its user', async () => {
    const { sid, client_secret: clientSecret } = await people.validated(email, alice)
    await ids.bind(REMOTE, token, { sid, clientSecret }, alice)
    const asking = { medium: 'email', address: email, room_id: '!r:hs.test', sender: alice }
    await expect(ids.storeInvite(REMOTE, token, asking)).rejects.toMatchObject({
      errcode: 'M_THREEPID_IN_USE',
      extra: { mxid: alice },
    })
  })
})

describe('which servers may be named', () => {
  it.each(['evil.test', 'id.hearth.test.evil.test', 'id.hearth.test:8448', '127.0.0.1'])(
    'seed 2: %s is not trusted: 400 M_SERVER_NOT_TRUSTED, and is not called',
    async (name) => {
      expect(await codeOf(servers('remote').lookup(name, 'x', { medium: 'email', address: 'a@b.c' }))).toEqual([
        400,
        'M_SERVER_NOT_TRUSTED',
      ])
      expect(asked).toEqual([])
    },
  )

  it.each([
    ...['', 'https://id.hearth.test', 'id.hearth.test/', 'id.hearth.test/x', 'a@id.hearth.test', 'id.hearth.test?x'],
    ...['id.hearth.test#', 'id.hearth.test:', 'id.hearth.test:0', 'id.hearth.test:99999', 'id.hearth.test.', '[::1'],
    ...['id hearth.test', 'id.hearth.test\r\nHost: x', '..', 'id..test'],
  ])('%j is no server name: 400 M_INVALID_PARAM', async (name) => {
    expect(await codeOf(servers('remote').lookup(name, 'x', { medium: 'email', address: 'a@b.c' }))).toEqual([
      400,
      'M_INVALID_PARAM',
    ])
    expect(asked).toEqual([])
  })

  it('names are the same in any case, and ours are one', () => {
    expect(servers('remote').normalise('ID.Hearth.TEST')).toBe(REMOTE)
    for (const name of ['hs.test', 'id.hearth.test', 'ID.hearth.test:443']) {
      expect(servers('own').normalise(name)).toBe('hs.test')
    }
  })
})

describe('identity servers that misbehave', () => {
  const lookup = async () => codeOf(servers('remote').lookup(REMOTE, 'x', { medium: 'email', address: 'a@b.c' }))

  it('no answer: 502 and 504 M_UNKNOWN', async () => {
    expect(await codeOf(servers('remote').lookup('dead.test', 'x', { medium: 'email', address: 'a@b.c' }))).toEqual([
      502,
      'M_UNKNOWN',
    ])
    instead = 'nothing'
    expect(await lookup()).toEqual([504, 'M_UNKNOWN'])
  })

  it.each([
    [{ status: 200, body: 'no json' }, [502, 'M_UNKNOWN']],
    [{ status: 200, body: '[]' }, [502, 'M_UNKNOWN']],
    [{ status: 200, body: '{"algorithms":["rot13"],"lookup_pepper":"x"}' }, [502, 'M_UNKNOWN']],
    [{ status: 500, body: '<html>' }, [502, 'M_UNKNOWN']],
    [{ status: 503, body: '{"errcode":"M_FORBIDDEN","error":"no"}' }, [502, 'M_UNKNOWN']],
    [{ status: 429, body: '{"errcode":"M_LIMIT_EXCEEDED","error":"no"}' }, [429, 'M_LIMIT_EXCEEDED']],
    [{ status: 302, body: '{"errcode":"M_FORBIDDEN","error":"x"}' }, [502, 'M_UNKNOWN']],
    [{ status: 403, body: '{"errcode":"M_FORBIDDEN","error":"no"}' }, [403, 'M_FORBIDDEN']],
    [{ status: 418, body: '{"errcode":"ORG.EXAMPLE_TEAPOT","error":"no"}' }, [418, 'ORG.EXAMPLE_TEAPOT']],
    [{ status: 400, body: '{"errcode":"<script>","error":"no"}' }, [502, 'M_UNKNOWN']],
    // To a client these two would say that its own session is over.
    [{ status: 401, body: '{"errcode":"M_UNKNOWN_TOKEN","error":"no"}' }, [401, 'M_UNAUTHORIZED']],
    [{ status: 401, body: '{"errcode":"M_MISSING_TOKEN","error":"no"}' }, [401, 'M_UNAUTHORIZED']],
  ])('%j: %j', async (answer, expected) => {
    instead = answer
    expect(await lookup()).toEqual(expected)
  })

  it('a pepper that changes between two requests is asked for again', async () => {
    const alice = `@pepper:hs.test` as UserId
    const token = await tokenOf(alice)
    const ids = servers('remote')
    const { sid, client_secret: clientSecret } = await people.validated(email, alice)
    await ids.bind(REMOTE, token, { sid, clientSecret }, alice)
    let changed = 0
    const client = createIdentityClient(
      {
        async request(request) {
          const answer = await requests.request(request)
          if (!request.url.endsWith('/hash_details') || changed++ > 0) return answer
          return { ok: true, status: 200, body: Buffer.from('{"algorithms":["sha256"],"lookup_pepper":"stale"}') }
        },
      },
      'auto',
    )
    const { services } = people.server
    const values = { server_name: 'hs.test', roles: ['client'], identity_servers: { trusted: [REMOTE] } }
    const { config } = loadConfig({ values, directory: '/tmp' })
    const stale = createIdentityServers({ config, identity: services.identity, client, signingKey: hsKey, log })
    expect(await stale.lookup(REMOTE, token, { medium: 'email', address: email })).toBe(alice)
    expect(changed).toBe(2)
  })

  it.each(['', 'a b', 'a\r\nX-Evil: 1', 'ü', 'x'.repeat(4_097)])(
    'the token %j is not sent: 400 M_INVALID_PARAM',
    async (token) => {
      const threepid = { medium: 'email', address: 'a@b.c' }
      expect(await codeOf(servers('remote').lookup(REMOTE, token, threepid))).toEqual([400, 'M_INVALID_PARAM'])
      expect(asked).toEqual([])
    },
  )

  it('bind: an association of somebody else is not believed', async () => {
    instead = { status: 200, body: JSON.stringify({ medium: 'email', address: 'a@b.c', mxid: '@other:hs.test' }) }
    const proof = { sid: 'x', clientSecret: 'x' }
    expect(await codeOf(servers('remote').bind(REMOTE, 'x', proof, '@a:hs.test' as UserId))).toEqual([502, 'M_UNKNOWN'])
  })

  it('unbind: one that knows no such request is "no-support"', async () => {
    const unbind = () => servers('remote').unbind(REMOTE, { medium: 'email', address: 'a@b.c' }, '@a:hs.test' as UserId)
    for (const status of [404, 405, 501]) {
      instead = { status, body: '{"errcode":"M_UNRECOGNIZED","error":"?"}' }
      expect(await unbind()).toBe('no-support')
    }
    instead = { status: 403, body: '{"errcode":"M_FORBIDDEN","error":"?"}' }
    expect(await codeOf(unbind())).toEqual([403, 'M_FORBIDDEN'])
  })

  it('the other dialect is tried where a server does not know the first', async () => {
    instead = { status: 404, body: '{"errcode":"M_UNRECOGNIZED","error":"?"}' }
    await lookup()
    expect(asked).toEqual(['GET /_matrix/identity/v2/hash_details', 'GET /_proto/identity/v2/hash_details'])
    asked.length = 0
    await codeOf(servers('remote', 'proto').lookup(REMOTE, 'x', { medium: 'email', address: 'a@b.c' }))
    expect(asked).toEqual(['GET /_proto/identity/v2/hash_details'])
  })

  it('the keys of an invitation by the shapes of the first generation', async () => {
    instead = { status: 200, body: '{"token":"t","display_name":"d","public_keys":["a","b"]}' }
    expect(await servers('remote').storeInvite(REMOTE, 'x', {})).toEqual({
      token: 't',
      display_name: 'd',
      public_keys: [{ public_key: 'a' }, { public_key: 'b' }],
    })
    instead = { status: 200, body: '{"token":"t","display_name":"d","public_keys":[],"public_key":"a"}' }
    expect((await servers('remote').storeInvite(REMOTE, 'x', {})).public_keys).toEqual([{ public_key: 'a' }])
  })
})
