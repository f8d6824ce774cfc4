import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { ProtocolError } from '../../../src/core/errors.ts'
import { createLoginBrake } from '../../../src/domain/accounts/login-brake.ts'
import { createSessions } from '../../../src/domain/accounts/sessions.ts'
import { BRAKE_FACTOR } from '../../../src/domain/limits.ts'
import { createSpending } from '../../../src/domain/spending.ts'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type Account, type Api, type Json, openApi, PASSWORD, register } from '../../support/api.ts'
import { startServer } from '../../support/server.ts'

const BURST = 5
const SLOW = { per_second: 0.001, burst: BURST }

let server: AccountServer
let api: Api
let addresses = 0

beforeAll(async () => {
  server = await startAccountServer({
    trusted_proxies: ['127.0.0.1'],
    registration: { enabled: true },
    rate_limits: { enabled: true, login: SLOW, registration: { per_second: 100, burst: 100 } },
  })
  api = openApi(server.baseUrl)
})
afterAll(async () => {
  await api.close()
  await server.close()
})

/** Where nobody has been. */
const somewhere = () => {
  addresses++
  return `198.51.${Math.floor(addresses / 250)}.${1 + (addresses % 250)}`
}

async function ask(method: string, path: string, from: string, { token, body }: { token?: string; body?: Json } = {}) {
  const answer = await fetch(`${server.baseUrl}/_matrix/client/v3${path}`, {
    method,
    headers: { 'x-forwarded-for': from, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: (await answer.json()) as Json }
}

const logIn = (user: string, from: string, password = PASSWORD) =>
  ask('POST', '/login', from, {
    body: { type: 'm.login.password', identifier: { type: 'm.id.user', user }, password },
  })

async function fail(user: string, from: string, times: number): Promise<number[]> {
  const statuses: number[] = []
  for (let n = 0; n < times; n++) statuses.push((await logIn(user, from, 'a wrong password')).status)
  return statuses
}

/** As many wrong passwords as an account bears, from as many addresses as that takes. */
async function besiege(user: string): Promise<void> {
  for (let n = 0; n < BRAKE_FACTOR; n++) expect(await fail(user, somewhere(), BURST)).toEqual(Array(BURST).fill(403))
}

describe('wrong passwords', () => {
  test('A8: from one address leave the account open to its owner at another, known or not', async () => {
    await register(api, 'anna')
    const stranger = somewhere()
    expect(await fail('anna', stranger, BURST + 1)).toEqual([...Array(BURST).fill(403), 429])
    const refused = await logIn('anna', stranger)
    expect([refused.status, refused.body.errcode]).toEqual([429, 'M_LIMIT_EXCEEDED'])
    expect(refused.body.retry_after_ms).toBeGreaterThan(0)
    expect((await logIn('anna', somewhere())).status).toBe(200)
  })

  test('A8: from many addresses slow down others, and never the owner at an address where a session of theirs was', async () => {
    await register(api, 'berta')
    const home = somewhere()
    const { body: session } = await logIn('berta', home)
    expect((await ask('GET', '/account/whoami', home, { token: session.access_token })).status).toBe(200)
    await besiege('berta')
    expect((await logIn('berta', somewhere())).status).toBe(429)
    expect((await logIn('berta', home)).status).toBe(200)
  })

  test('A8: an address is known after the session has ended, and one of a living session after a restart', async () => {
    await register(api, 'clara')
    const [home, work] = [somewhere(), somewhere()]
    const { body: ended } = await logIn('clara', home)
    await ask('POST', '/logout', home, { token: ended.access_token })
    const { body: alive } = await logIn('clara', work)
    const { body: whoami } = await ask('GET', '/account/whoami', work, { token: alive.access_token })
    await besiege('clara')
    expect((await logIn('clara', home)).status).toBe(200)
    const { sessions } = server.services
    await sessions.flush()
    const requester = await sessions.find(alive.access_token)
    const restarted = createSessions({ db: server.db, clock: Date })
    expect(await restarted.hasBeenAt(requester!.userNid, work)).toBe(true)
    expect(await restarted.hasBeenAt(requester!.userNid, somewhere())).toBe(false)
    expect(whoami.user_id).toBe('@clara:localhost')
  })

  test('A8: do not keep the owner from proving the password again by a session, wherever it is', async () => {
    const dora = await register(api, 'dora')
    await besiege('dora')
    expect((await prove(dora, 'dora', PASSWORD)).status).toBe(200)
  })

  test("A8: by way of one's own session count against the account that they are for", async () => {
    const [mallory] = await Promise.all([register(api, 'mallory'), register(api, 'emma')])
    const tries = await Promise.all(Array.from({ length: BURST }, () => prove(mallory, 'emma', 'a wrong password')))
    expect(tries.map(({ status }) => status)).toEqual(Array(BURST).fill(401))
    expect((await prove(mallory, 'emma', 'a wrong password')).status).toBe(429)
    expect((await logIn('emma', somewhere())).status).toBe(200)
  })

  test.each(['mustHaveRoom', 'verify'] as const)('A8: do not count while nobody can check them (%s)', async (part) => {
    const user = `fritz.${part.toLowerCase()}`
    await register(api, user)
    const full = vi.spyOn(server.services.passwords, part).mockImplementation(() => {
      const error = new ProtocolError('M_LIMIT_EXCEEDED', 'Too many logins at once.')
      if (part === 'verify') return Promise.reject(error)
      throw error
    })
    try {
      for (let n = 0; n <= BURST * BRAKE_FACTOR; n++) {
        expect((await logIn(user, somewhere())).body.error).toBe('Too many logins at once.')
      }
    } finally {
      full.mockRestore()
    }
    expect((await logIn(user, somewhere())).status).toBe(200)
  })

  test('A8: for an account that does not exist are answered alike', async () => {
    const stranger = somewhere()
    expect(await fail('nobody', stranger, BURST + 1)).toEqual([...Array(BURST).fill(403), 429])
    await besiege('nobody2')
    expect((await logIn('nobody2', somewhere())).status).toBe(429)
  })

  test('A8: that are refused are counted in the metrics', async () => {
    expect(server.services.logins.refusals()).toBeGreaterThan(0)
    const rate_limits = { enabled: true, login: SLOW }
    const whole = await startServer({ trusted_proxies: ['127.0.0.1'], rate_limits })
    const identifier = { type: 'm.id.user', user: 'nobody' }
    const body = JSON.stringify({ type: 'm.login.password', identifier, password: 'a wrong password' })
    const logInFrom = async (from: string) => {
      const headers = { 'x-forwarded-for': from }
      return (await fetch(`${whole.baseUrl}/_matrix/client/v3/login`, { method: 'POST', headers, body })).status
    }
    for (let n = 0; n < BURST * BRAKE_FACTOR; n++) expect(await logInFrom(somewhere())).toBe(403)
    expect(await logInFrom(somewhere())).toBe(429)
    expect(await whole.metrics()).toMatch(/^hearth_refused_logins 1$/m)
    await whole.close()
  })
})

/** Removes a device that is not there, by user-interactive authentication. */
async function prove({ token }: Account, user: string, password: string) {
  const from = somewhere()
  const { body } = await ask('DELETE', '/devices/NONE', from, { token, body: {} })
  const identifier = { type: 'm.id.user', user }
  const auth = { type: 'm.login.password', identifier, password, session: body.session }
  return ask('DELETE', '/devices/NONE', from, { token, body: { auth } })
}

describe('the brake', () => {
  const brakeOf = () => {
    const clock = { at: 1_000_000, now: () => clock.at }
    const login = { per_second: 1, burst: 2 }
    const limits = { enabled: true, login } as Parameters<typeof createLoginBrake>[0]['config']['rate_limits']
    const brake = createLoginBrake({ config: { rate_limits: limits }, clock })
    const begin = (account: string, place: string, isKnown = false) => brake.begin(account, place, async () => isKnown)
    return { clock, begin }
  }

  test('A8: counts no password that was right', async () => {
    const { begin } = brakeOf()
    for (let n = 0; n < 100; n++) (await begin('a', 'here'))()
    await begin('a', 'here')
    await begin('a', 'here')
    await expect(begin('a', 'here')).rejects.toMatchObject({ status: 429, extra: { retry_after_ms: 1_000 } })
  })

  test('A8: loosens with time', async () => {
    const { clock, begin } = brakeOf()
    for (let n = 0; n < 2 * BRAKE_FACTOR; n++) await begin('a', `place ${n}`)
    await expect(begin('a', 'elsewhere')).rejects.toMatchObject({ status: 429 })
    clock.at += 1_000
    await begin('a', 'elsewhere')
  })

  test('A8: remembers so many and no more', () => {
    const spending = createSpending({ clock: { now: () => 0 }, max: 3 })
    const bucket = { burst: 1, perSecond: 0.001 }
    for (const key of ['a', 'b', 'c']) expect(spending.take(key, 1, bucket)).toBe(1)
    expect(spending.take('a', 1, bucket)).toBe(0)
    expect(spending.take('d', 1, bucket)).toBe(1)
    expect(['b', 'a'].map((key) => spending.take(key, 1, bucket))).toEqual([1, 0])
  })
})
