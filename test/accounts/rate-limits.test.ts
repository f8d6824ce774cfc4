import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import type { RateLimitOverride } from '../../src/domain/rate-limit-overrides.ts'
import { createRateLimits, type LimitName } from '../../src/domain/rate-limits.ts'
import { type Account, type Api, createRoom, type Json, openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'

function limitsOf(bucket: RateLimitOverride, enabled = true, own: Record<number, RateLimitOverride> = {}) {
  const { config } = loadConfig({ values: { rate_limits: { enabled, message: bucket } }, directory: '/' })
  const clock = { at: 1_000_000, now: () => clock.at }
  const limits = createRateLimits({ config, clock, overrides: { get: (userNid) => own[userNid] } })
  const isRefused = (key: string | number, name: LimitName = 'message'): number => {
    try {
      limits.take(name, key)
      return 0
    } catch (error) {
      return (error as { extra: { retry_after_ms: number } }).extra.retry_after_ms
    }
  }
  return { clock, isRefused, takeAhead: limits.takeAhead }
}

describe('a token bucket', () => {
  it('gives its burst, then as fast as it fills', () => {
    const { clock, isRefused } = limitsOf({ per_second: 2, burst: 3 })
    expect([1, 2, 3].map(() => isRefused('a'))).toEqual([0, 0, 0])
    expect(isRefused('a')).toBe(500)
    clock.at += 499
    expect(isRefused('a')).toBe(1)
    clock.at += 1
    expect(isRefused('a')).toBe(0)
    expect(isRefused('a')).toBe(500)
    clock.at += 3_600_000
    expect([1, 2, 3, 4].map(() => isRefused('a') > 0)).toEqual([false, false, false, true])
  })

  it('gives tokens ahead as long as it stays half full', () => {
    const { clock, isRefused, takeAhead } = limitsOf({ per_second: 1, burst: 10 })
    expect(takeAhead('message', 'a', 3)).toBe(3)
    expect(takeAhead('message', 'a', 3)).toBe(2)
    expect(takeAhead('message', 'a', 3)).toBe(0)
    expect([1, 2, 3, 4, 5].map(() => isRefused('a'))).toEqual([0, 0, 0, 0, 0])
    expect(isRefused('a')).toBeGreaterThan(0)
    expect(takeAhead('message', 'a', 3)).toBe(0)
    clock.at += 6_000
    expect(takeAhead('message', 'a', 3)).toBe(1)
    expect(limitsOf({ per_second: 1, burst: 1 }).takeAhead('message', 'a', 3)).toBe(0)
    expect(limitsOf({ per_second: 1, burst: 1 }, false).takeAhead('message', 'a', 3)).toBe(3)
  })

  it('is one per key, and a number is not its text', () => {
    const { isRefused } = limitsOf({ per_second: 1, burst: 1 })
    expect([isRefused('1'), isRefused(1), isRefused('2')]).toEqual([0, 0, 0])
    expect(isRefused('1')).toBeGreaterThan(0)
  })

  it('gains nothing while the clock goes backwards', () => {
    const { clock, isRefused } = limitsOf({ per_second: 1, burst: 1 })
    expect(isRefused('a')).toBe(0)
    clock.at -= 60_000
    expect(isRefused('a')).toBe(1000)
    clock.at += 1000
    expect(isRefused('a')).toBe(0)
  })

  it('is forgotten when 20,000 others were used since', () => {
    const { isRefused } = limitsOf({ per_second: 0.001, burst: 1 })
    isRefused('first')
    for (let key = 0; key < 19_999; key++) isRefused(key)
    expect(isRefused('first')).toBeGreaterThan(0)
    for (let key = 0; key < 20_000; key++) isRefused(`other ${key}`)
    expect(isRefused('first')).toBe(0)
  })

  it('does not exist where limits are off', () => {
    const { isRefused } = limitsOf({ per_second: 0.001, burst: 1 }, false)
    expect([1, 2, 3].map(() => isRefused('a'))).toEqual([0, 0, 0])
  })
})

describe('a user with limits of their own', () => {
  const many = (isRefused: (key: number, name?: LimitName) => number, name?: LimitName) =>
    Array.from({ length: 20 }, () => isRefused(7, name)).filter((wait) => wait === 0).length

  it('sends as much as these allow, and does all else as others', () => {
    const { isRefused } = limitsOf({ per_second: 1, burst: 2 }, true, { 7: { per_second: 1, burst: 5 } })
    expect(many(isRefused)).toBe(5)
    expect(many(isRefused, 'login')).toBe(10)
    expect(isRefused('7') + isRefused('7')).toBe(0)
    expect(isRefused('7')).toBeGreaterThan(0)
  })

  it('does everything freely with 0 per second', () => {
    const { isRefused } = limitsOf({ per_second: 1, burst: 1 }, true, { 7: { per_second: 0, burst: 0 } })
    expect(many(isRefused) + many(isRefused, 'login') + many(isRefused, 'join')).toBe(60)
  })
})

describe('429 M_LIMIT_EXCEEDED over HTTP', () => {
  const tight = { per_second: 0.001, burst: 2 }
  const names = ['message', 'login', 'registration', 'join', 'invite', 'create_room', 'other'] as const
  let server: TestServer
  let api: Api
  let alice: Account
  let roomId: string

  beforeAll(async () => {
    server = await startServer({
      rate_limits: { enabled: true, ...Object.fromEntries(names.map((name) => [name, tight])) },
    })
    api = openApi(server.baseUrl)
    alice = await register(api, 'alice')
    roomId = await createRoom(api, alice.token)
  })

  afterAll(async () => {
    await api.close()
    await server.close()
  })

  const room = () => `/rooms/${encodeURIComponent(roomId)}`
  const cases: [line: string, method: 'GET' | 'POST' | 'PUT', path: () => string, body: Json][] = [
    // Seed 2, Limits 3
    ['account/password', 'POST', () => '/account/password', { new_password: 'long enough for here' }],
    ['account/deactivate', 'POST', () => '/account/deactivate', {}],
    ['register/available', 'GET', () => '/register/available?username=free', undefined],
    ['account/3pid/add', 'POST', () => '/account/3pid/add', { client_secret: 'a', sid: 'b' }],
    [
      'account/3pid/bind',
      'POST',
      () => '/account/3pid/bind',
      { client_secret: 'a', sid: 'b', id_server: 'c', id_access_token: 'd' },
    ],
    // What fills servers
    ['login', 'POST', () => '/login', { type: 'm.login.password' }],
    ['register', 'POST', () => '/register', {}],
    ['sending', 'PUT', () => `${room()}/send/m.room.message/${Math.random()}`, { body: 'x', msgtype: 'm.text' }],
    ['joins', 'POST', () => `/join/${encodeURIComponent(roomId)}`, {}],
    ['invites', 'POST', () => `${room()}/invite`, { user_id: '@bob:localhost' }],
  ]
  it.each(cases)('%s', async (_line, method, path, body) => {
    const isOpen = /login|register/.test(path())
    const answers = []
    for (let i = 0; i < 3; i++) {
      answers.push(
        await fetch(`${server.baseUrl}/_proto/client/r0${path()}`, {
          method,
          headers: isOpen ? {} : { authorization: `Bearer ${alice.token}` },
          body: body === undefined ? null : JSON.stringify(body),
        }),
      )
    }
    const last = answers.at(-1)!
    expect(last.status).toBe(429)
    const { errcode, retry_after_ms, error } = (await last.json()) as Json
    expect(errcode).toBe('M_LIMIT_EXCEEDED')
    expect(error).toEqual(expect.any(String))
    expect(retry_after_ms).toBeGreaterThan(0)
    expect(Number(last.headers.get('retry-after'))).toBe(Math.ceil(retry_after_ms / 1000))
  })

  it('is lifted for one user by an operator, from one request to the next, and after a restart too', async () => {
    const nid = (await server.services.sessions.find(alice.token))?.userNid as number
    const send = () =>
      api.request('PUT', `${room()}/send/m.room.message/${Math.random()}`, {
        token: alice.token,
        body: { body: 'x', msgtype: 'm.text' },
      })
    expect((await send()).status).toBe(429)
    await server.services.rateLimitOverrides.set(nid, { per_second: 0, burst: 0 })
    expect((await send()).status).toBe(200)
    await server.services.rateLimitOverrides.remove(nid)
    expect([await send(), await send()].at(-1)?.status).toBe(429)
    await server.services.rateLimitOverrides.set(nid, { per_second: 0, burst: 0 })
    await server.restart()
    for (let i = 0; i < 5; i++) expect((await send()).status).toBe(200)
  })
})
