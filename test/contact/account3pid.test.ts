import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Account } from '../support/api.ts'
import { type Answer, type ContactPeople, ownPassword, type Proof, startContactPeople } from './contact-people.ts'

const HOUR = 3_600_000

let people: ContactPeople
let alice: Account
let bob: Account
let counter = 0
let email: string

beforeAll(async () => {
  people = await startContactPeople()
})
afterAll(() => people.close())
beforeEach(async () => {
  counter++
  email = `alice${counter}@example.org`
  alice = await people.account(`alice${counter}`)
  bob = await people.account(`bob${counter}`)
})

const outcome = ({ status, body }: Answer) => [status, body.errcode]
const post = (path: string, { token }: Account, body: object) => people.api.request('POST', path, { token, body })
const prove = () => people.validated('account/3pid', email)
const lookup = async (address = email) => {
  const query = new URLSearchParams({ medium: 'email', address })
  return (await people.api.call('GET', `/_matrix/identity/api/v1/lookup?${query}`)).mxid
}

/** A session of the identity service whose link was followed. */
async function identityProof(address = email, by = alice): Promise<{ creds: object; proof: Proof }> {
  const id_access_token = await people.identityToken(by)
  const client_secret = `id.${counter}.${Math.random().toString(36).slice(2)}`
  const path = '/_matrix/identity/v2/validate/email/requestToken'
  const body = { client_secret, email: address, send_attempt: 1 }
  const { sid } = await people.api.call('POST', path, { token: id_access_token, body })
  await people.follow()
  const proof = { sid, client_secret }
  return { proof, creds: { ...proof, id_server: 'localhost', id_access_token } }
}

describe('seed 2, POST C/account/3pid/add and GET C/account/3pid', () => {
  it('401 flows without auth, whatever the session; 200 {} with it; the list has medium, address, validated_at, added_at', async () => {
    const before = Date.now()
    const proof = await prove()
    const challenge = await post('/account/3pid/add', alice, { sid: 'x', client_secret: 'x' })
    expect(challenge).toMatchObject({ status: 401, body: { session: expect.any(String) } })
    expect(challenge.body.flows).toContainEqual({ stages: ['m.login.password'] })
    expect(challenge.body.errcode).toBeUndefined()
    expect(await people.add(alice, proof)).toEqual({ status: 200, body: {} })
    const [row, ...others] = await people.listed(alice)
    expect(others).toEqual([])
    expect(row).toEqual({
      medium: 'email',
      address: email,
      validated_at: expect.any(Number),
      added_at: expect.any(Number),
    })
    expect(row?.validated_at).toBeGreaterThanOrEqual(before)
    expect(row?.added_at).toBeGreaterThanOrEqual(row?.validated_at ?? 0)
    expect(await people.listed(bob)).toEqual([])
  })

  it('by all paths, the unstable ones of older clients too', async () => {
    for (const prefix of ['/_matrix/client/r0', '/_proto/client/r0', '/_proto/client/v3', '/_matrix/client/unstable']) {
      const account = await people.account()
      const proof = await people.validated('account/3pid', `${prefix.replaceAll('/', '')}${counter}@example.org`)
      expect(await post(`${prefix}/account/3pid/add`, account, { ...proof, auth: ownPassword(account) })).toEqual({
        status: 200,
        body: {},
      })
    }
  })

  it('403 M_THREEPID_AUTH_FAILED for a session that shows nothing, another purpose, a wrong secret, an expired one', async () => {
    const add = async (proof: Proof) => outcome(await people.add(alice, proof))
    expect(await add({ sid: 'unknown', client_secret: 'x' })).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    const { body } = await people.requestEmail('account/3pid', email, { client_secret: `waits${counter}` })
    expect(await add({ sid: body.sid, client_secret: `waits${counter}` })).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    expect(await add(await people.validated('register', email))).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    const proof = await prove()
    expect(await add({ ...proof, client_secret: 'wrong' })).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    people.server.advance(25 * HOUR)
    expect(await add(proof)).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    expect(await people.listed(alice)).toEqual([])
  })

  it('refuses a 3PID already on another account: 400 M_THREEPID_IN_USE, also when both validated it before', async () => {
    const [first, second] = [await prove(), await prove()]
    expect((await people.add(alice, first)).status).toBe(200)
    expect(outcome(await people.add(bob, second))).toEqual([400, 'M_THREEPID_IN_USE'])
    expect(await people.listed(bob)).toEqual([])
    expect(await people.listed(alice)).toHaveLength(1)
  })

  it('of parallel adds of one address by ten users, one wins', async () => {
    const users = await Promise.all(Array.from({ length: 10 }, (_, n) => people.account(`race${counter}.${n}`)))
    const proofs: Proof[] = []
    for (const _ of users) proofs.push(await prove())
    const answers = await Promise.all(users.map((user, n) => people.add(user, proofs[n] as Proof)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ body }) => body.errcode === 'M_THREEPID_IN_USE')).toHaveLength(9)
  })

  it('a session adds once: repeated by its user it changes nothing, after a delete it adds nothing, and it is of no use to another', async () => {
    const proof = await prove()
    const answers = await Promise.all(Array.from({ length: 5 }, () => people.add(alice, proof)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(await people.listed(alice)).toHaveLength(1)
    expect(outcome(await people.add(bob, proof))).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    await post('/account/3pid/delete', alice, { medium: 'email', address: email })
    expect(outcome(await people.add(bob, proof))).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    expect(outcome(await people.add(alice, proof))).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    expect(await people.listed(alice)).toEqual([])
  })

  it('a wrong password adds nothing: 401', async () => {
    const auth = { ...ownPassword(alice), password: 'wrong' }
    const { status, body } = await post('/account/3pid/add', alice, { ...(await prove()), auth })
    expect([status, body.errcode]).toEqual([401, 'M_FORBIDDEN'])
    expect(await people.listed(alice)).toEqual([])
  })

  it('an account has 100 addresses at most: 403 M_THREEPID_DENIED', async () => {
    const [owner] = await people.server.db.query<{ user_nid: number }>(
      'SELECT user_nid FROM matrix_user WHERE user_id = $1',
      [alice.userId],
    )
    await people.server.db.tx((tx) =>
      tx.query(
        `INSERT INTO user_threepid (medium, address, user_nid, validated_at, added_at)
         SELECT 'email', 'full' || n || '.${counter}@example.org', $1, 1, 1 FROM generate_series(1, 100) n`,
        [owner?.user_nid],
      ),
    )
    expect(outcome(await people.add(alice, await prove()))).toEqual([403, 'M_THREEPID_DENIED'])
  })

  it('capabilities say that it is there', async () => {
    const { capabilities } = await people.api.call('GET', '/capabilities', { token: alice.token })
    expect(capabilities['m.3pid_changes']).toEqual({ enabled: true })
  })
})

describe('seed 2, POST C/account/3pid/bind', () => {
  it('200 {}, and others find the user; it is tracked for a later unbind', async () => {
    const { creds } = await identityProof()
    expect(await post('/account/3pid/bind', alice, creds)).toEqual({ status: 200, body: {} })
    expect(await lookup()).toBe(alice.userId)
    expect(await people.listed(alice)).toEqual([])
    // "if absent the one originally used"
    const unbound = await post('/account/3pid/unbind', alice, { medium: 'email', address: email.toUpperCase() })
    expect(unbound).toEqual({ status: 200, body: { id_server_unbind_result: 'success' } })
    expect(await lookup()).toBeUndefined()
  })

  it('is not prevented by another user who has bound the address', async () => {
    await post('/account/3pid/bind', bob, (await identityProof(email, bob)).creds)
    expect((await post('/account/3pid/bind', alice, (await identityProof()).creds)).status).toBe(200)
    expect(await lookup()).toBe(alice.userId)
  })

  it('errors of the identity service are proxied', async () => {
    const { creds, proof } = await identityProof()
    const bind = async (change: object) => outcome(await post('/account/3pid/bind', alice, { ...creds, ...change }))
    expect(await bind({ client_secret: 'wrong' })).toEqual([404, 'M_NO_VALID_SESSION'])
    expect(await bind({ sid: 'unknown' })).toEqual([404, 'M_NO_VALID_SESSION'])
    expect(await bind({ id_access_token: 'wrong' })).toEqual([401, 'M_UNAUTHORIZED'])
    // The token of another user binds nothing to them.
    expect(await bind({ id_access_token: await people.identityToken(bob) })).toEqual([403, 'M_UNAUTHORIZED'])
    // A session of the homeserver is none of the identity service's.
    expect(await bind(await prove())).toEqual([404, 'M_NO_VALID_SESSION'])
    people.server.advance(25 * HOUR)
    expect(await bind(proof)).toEqual([400, 'M_SESSION_EXPIRED'])
    expect(await lookup()).toBeUndefined()
  })

  it.each([
    [{ id_server: 'evil.test' }, 400, 'M_SERVER_NOT_TRUSTED'],
    [{ id_server: '127.0.0.1:22' }, 400, 'M_SERVER_NOT_TRUSTED'],
    [{ id_server: 'localhost/../../x' }, 400, 'M_INVALID_PARAM'],
    [{ id_server: 'user@localhost' }, 400, 'M_INVALID_PARAM'],
    [{ id_server: 'https://localhost' }, 400, 'M_INVALID_PARAM'],
    [{ id_server: undefined }, 400, 'M_MISSING_PARAM'],
    [{ id_access_token: undefined }, 400, 'M_MISSING_PARAM'],
    [{ sid: undefined }, 400, 'M_MISSING_PARAM'],
    [{ client_secret: undefined }, 400, 'M_MISSING_PARAM'],
    [{ sid: 'a b' }, 400, 'M_INVALID_PARAM'],
  ])('%j: %i %s', async (change, status, errcode) => {
    const creds = { sid: 'x', client_secret: 'x', id_server: 'localhost', id_access_token: 'x', ...change }
    expect(outcome(await post('/account/3pid/bind', alice, creds))).toEqual([status, errcode])
  })
})

describe('seed 2, POST C/account/3pid (deprecated): behaves like bind', () => {
  it('200, and the address is bound', async () => {
    const { creds } = await identityProof()
    expect(await post('/account/3pid', alice, { three_pid_creds: creds })).toEqual({ status: 200, body: {} })
    expect(await lookup()).toBe(alice.userId)
  })

  it('403 M_THREEPID_AUTH_FAILED when the credentials show nothing', async () => {
    const { creds } = await identityProof()
    const ask = async (change: object) =>
      outcome(await post('/account/3pid', alice, { three_pid_creds: { ...creds, ...change } }))
    expect(await ask({ client_secret: 'wrong' })).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    expect(await ask({ sid: 'unknown' })).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    people.server.advance(25 * HOUR)
    expect(await ask({})).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    expect(outcome(await post('/account/3pid', alice, {}))).toEqual([400, 'M_MISSING_PARAM'])
    expect(outcome(await post('/account/3pid', alice, { three_pid_creds: { sid: 'x' } }))).toEqual([
      400,
      'M_MISSING_PARAM',
    ])
  })
})

describe('seed 2, POST C/account/3pid/delete', () => {
  it('takes the address from the account and unbinds it: "success"; then it is free for others', async () => {
    await people.add(alice, await prove())
    await post('/account/3pid/bind', alice, (await identityProof()).creds)
    const body = { medium: 'email', address: email.toUpperCase() }
    expect(await post('/account/3pid/delete', alice, body)).toEqual({
      status: 200,
      body: { id_server_unbind_result: 'success' },
    })
    expect(await people.listed(alice)).toEqual([])
    expect(await lookup()).toBeUndefined()
    expect((await people.add(bob, await prove())).status).toBe(200)
  })

  it('"no-support" where it is not known where the address was bound, and where id_server is not trusted; it goes all the same', async () => {
    await people.add(alice, await prove())
    const remove = async (change: object) =>
      (await post('/account/3pid/delete', alice, { medium: 'email', address: email, ...change })).body
    expect(await remove({ id_server: 'untrusted.test' })).toEqual({ id_server_unbind_result: 'no-support' })
    expect(await people.listed(alice)).toEqual([])
    expect(await remove({})).toEqual({ id_server_unbind_result: 'no-support' })
  })

  it('with id_server it is unbound there, whoever bound it for the user', async () => {
    const { proof } = await identityProof()
    const token = await people.identityToken(alice)
    await people.api.call('POST', '/_matrix/identity/v2/3pid/bind', { token, body: { ...proof, mxid: alice.userId } })
    const body = { medium: 'email', address: email, id_server: 'LOCALHOST' }
    expect((await post('/account/3pid/delete', alice, body)).body).toEqual({ id_server_unbind_result: 'success' })
    expect(await lookup()).toBeUndefined()
  })

  it('takes nothing from others, neither from the account nor from the identity server', async () => {
    await people.add(alice, await prove())
    await post('/account/3pid/bind', alice, (await identityProof()).creds)
    for (const path of ['/account/3pid/delete', '/account/3pid/unbind']) {
      const body = { medium: 'email', address: email, id_server: 'localhost' }
      expect((await post(path, bob, body)).status).toBe(200)
    }
    expect(await people.listed(alice)).toHaveLength(1)
    expect(await lookup()).toBe(alice.userId)
  })

  it.each([
    [{ medium: 'fax' }, 'M_INVALID_PARAM'],
    [{ medium: undefined }, 'M_MISSING_PARAM'],
    [{ address: undefined }, 'M_MISSING_PARAM'],
    [{ address: 7 }, 'M_BAD_JSON'],
    [{ address: 'a\u0000@example.org' }, 'M_INVALID_PARAM'],
    [{ address: 'x'.repeat(501) }, 'M_INVALID_PARAM'],
    [{ id_server: 'a/b' }, 'M_INVALID_PARAM'],
  ])('bad input %j: 400 %s', async (change, errcode) => {
    for (const path of ['/account/3pid/delete', '/account/3pid/unbind']) {
      const body = { medium: 'email', address: email, ...change }
      expect(outcome(await post(path, alice, body))).toEqual([400, errcode])
    }
  })
})

describe('POST C/account/3pid/unbind', () => {
  it('leaves the address on the account', async () => {
    await people.add(alice, await prove())
    await post('/account/3pid/bind', alice, (await identityProof()).creds)
    const body = { medium: 'email', address: email, id_server: 'localhost' }
    expect((await post('/account/3pid/unbind', alice, body)).body).toEqual({ id_server_unbind_result: 'success' })
    expect(await lookup()).toBeUndefined()
    expect(await people.listed(alice)).toHaveLength(1)
    // Now nothing is known to be bound.
    expect((await post('/account/3pid/unbind', alice, { medium: 'email', address: email })).body).toEqual({
      id_server_unbind_result: 'no-support',
    })
  })

  it('400 M_SERVER_NOT_TRUSTED for a server that is asked for and is not trusted', async () => {
    const body = { medium: 'email', address: email, id_server: 'untrusted.test' }
    expect(outcome(await post('/account/3pid/unbind', alice, body))).toEqual([400, 'M_SERVER_NOT_TRUSTED'])
  })
})

describe('an account that ends', () => {
  const nidOf = async ({ userId }: Account) =>
    (
      await people.server.db.query<{ user_nid: number }>('SELECT user_nid FROM matrix_user WHERE user_id = $1', [
        userId,
      ])
    )[0]?.user_nid as number
  const removeAll = async (account: Account, idServer?: string) =>
    people.server.services.contacts.removeAll(await nidOf(account), idServer)

  it('has its addresses taken and unbound: "success", also when there is nothing to unbind', async () => {
    expect(await removeAll(alice)).toBe('success')
    await people.add(alice, await prove())
    await post('/account/3pid/bind', alice, (await identityProof()).creds)
    await post('/account/3pid/bind', alice, (await identityProof(`second.${email}`)).creds)
    expect(await removeAll(alice)).toBe('success')
    expect(await people.listed(alice)).toEqual([])
    expect(await lookup()).toBeUndefined()
    expect(await lookup(`second.${email}`)).toBeUndefined()
    expect(await removeAll(alice)).toBe('success')
  })

  it('with id_server what was bound there otherwise is unbound too; one that is not trusted is "no-support"', async () => {
    await people.add(alice, await prove())
    const { proof } = await identityProof()
    const token = await people.identityToken(alice)
    await people.api.call('POST', '/_matrix/identity/v2/3pid/bind', { token, body: { ...proof, mxid: alice.userId } })
    expect(await removeAll(alice, 'untrusted.test')).toBe('no-support')
    expect(await people.listed(alice)).toEqual([])
    expect(await lookup()).toBe(alice.userId)
    await people.add(alice, await prove())
    expect(await removeAll(alice, 'localhost')).toBe('success')
    expect(await lookup()).toBeUndefined()
  })
})

describe('who may', () => {
  const OPERATIONS = [
    ['GET', '/account/3pid'],
    ['POST', '/account/3pid'],
    ['POST', '/account/3pid/add'],
    ['POST', '/account/3pid/bind'],
    ['POST', '/account/3pid/delete'],
    ['POST', '/account/3pid/unbind'],
  ] as const

  it.each(OPERATIONS)('%s %s: nobody without a token, with an unknown one, or as a guest', async (method, path) => {
    const body = method === 'GET' ? undefined : { medium: 'email', address: email, sid: 'x', client_secret: 'x' }
    const ask = (token?: string) => people.api.request(method, path, { ...(token && { token }), body }).then(outcome)
    expect(await ask()).toEqual([401, 'M_MISSING_TOKEN'])
    expect(await ask('nonsense')).toEqual([401, 'M_UNKNOWN_TOKEN'])
    const guest = await people.api.call('POST', '/register?kind=guest', { body: {} })
    expect(await ask(guest.access_token)).toEqual([403, 'M_GUEST_ACCESS_FORBIDDEN'])
  })

  it('seed 2, Limits 3: add and bind answer 429 M_LIMIT_EXCEEDED, delete does not', async () => {
    const limited = await startContactPeople({ rate_limits: { enabled: true, other: { per_second: 0.001, burst: 2 } } })
    const account = await limited.account()
    const ask = (path: string) =>
      limited.api.request('POST', path, { token: account.token, body: { medium: 'email', address: 'a@b.c' } })
    const statuses: number[] = []
    for (const path of ['add', 'bind', 'add', 'bind']) statuses.push((await ask(`/account/3pid/${path}`)).status)
    expect(statuses.slice(2)).toEqual([429, 429])
    expect((await ask('/account/3pid/bind')).body).toMatchObject({
      errcode: 'M_LIMIT_EXCEEDED',
      retry_after_ms: expect.any(Number),
    })
    for (let n = 0; n < 5; n++) expect((await ask('/account/3pid/delete')).status).toBe(200)
    await limited.close()
  })
})
