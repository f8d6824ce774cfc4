import { afterEach, describe, expect, it } from 'vitest'
import { BRAKE_FACTOR } from '../../src/domain/limits.ts'
import { networkOf } from '../../src/domain/network.ts'
import { addressReader } from '../../src/http/client-address.ts'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import type { Json } from '../support/api.ts'
import { CLIENT_API } from '../support/interfaces.ts'

let server: AccountServer | undefined

afterEach(async () => {
  await server?.close()
  server = undefined
})

describe('rate limits', () => {
  it('answer 429 with the time to wait, and let go of it after that time', async () => {
    server = await startAccountServer({ rate_limits: { enabled: true, other: { per_second: 0.5, burst: 3 } } })
    const ask = () => fetch(`${server?.baseUrl}/_matrix/client/v3/login`)
    const statuses = [await ask(), await ask(), await ask()].map(({ status }) => status)
    expect(statuses).toEqual([200, 200, 200])
    const refused = await ask()
    expect(refused.status).toBe(429)
    const body = (await refused.json()) as Json
    expect(body.errcode).toBe('M_LIMIT_EXCEEDED')
    expect(body.retry_after_ms).toBeGreaterThan(1000)
    expect(body.retry_after_ms).toBeLessThanOrEqual(2000)
    expect(refused.headers.get('retry-after')).toBe('2')
    server.advance(body.retry_after_ms)
    expect((await ask()).status).toBe(200)
    expect((await ask()).status).toBe(429)
  })

  it('count each address behind a trusted proxy by itself', async () => {
    server = await startAccountServer({
      trusted_proxies: ['127.0.0.1'],
      rate_limits: { enabled: true, other: { per_second: 0.01, burst: 1 } },
    })
    const from = async (address: string) =>
      (await fetch(`${server?.baseUrl}/_matrix/client/v3/login`, { headers: { 'x-forwarded-for': address } })).status
    expect(await from('198.51.100.1')).toBe(200)
    expect(await from('198.51.100.1')).toBe(429)
    // What the client wrote itself stands further left and counts for nothing.
    expect(await from('203.0.113.9, 198.51.100.1')).toBe(429)
    expect(await from('198.51.100.2')).toBe(200)
  })

  it('do not believe a header from anyone else', async () => {
    server = await startAccountServer({ rate_limits: { enabled: true, other: { per_second: 0.01, burst: 1 } } })
    const from = async (address: string) =>
      (await fetch(`${server?.baseUrl}/_matrix/client/v3/login`, { headers: { 'x-forwarded-for': address } })).status
    expect(await from('198.51.100.1')).toBe(200)
    expect(await from('198.51.100.2')).toBe(429)
  })

  it('protect an account from guessing, whatever address it comes from', async () => {
    server = await startAccountServer({
      trusted_proxies: ['127.0.0.1'],
      registration: { enabled: true },
      rate_limits: { enabled: true, login: { per_second: 0.01, burst: 2 } },
    })
    const guess = async (address: string, user: string) => {
      const body = JSON.stringify({
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user },
        password: 'guess',
      })
      const headers = { 'x-forwarded-for': address }
      return (await fetch(`${server?.baseUrl}/_matrix/client/v3/login`, { method: 'POST', body, headers })).status
    }
    for (let n = 1; n <= BRAKE_FACTOR; n++) {
      expect(await guess(`198.51.100.${n}`, 'alice')).toBe(403)
      expect(await guess(`198.51.100.${n}`, '@ALICE:localhost')).toBe(403)
    }
    expect(await guess('198.51.100.100', '@alice:localhost')).toBe(429)
    expect(await guess('198.51.100.100', 'bob')).toBe(403)
  })
})

describe('what users send', () => {
  /** They end something, wait for news, or are limited by what they ask for. */
  const UNLIMITED = [
    'DELETE C/devices/{deviceId}',
    'POST C/account/3pid/delete',
    'POST C/delete_devices',
    'POST C/logout',
    'POST C/logout/all',
    'POST C1/appservice/{appserviceId}/ping',
    'POST CU/org.matrix.simplified_msc3575/sync',
    'POST client/v4/sync',
    'PUT C/devices/{deviceId}',
  ]

  it('is limited in its rate, so that nobody stores or has computed much at once', () => {
    const open = CLIENT_API.filter(({ method, options: { auth, limited } }) => {
      return method !== 'GET' && auth === 'user' && limited === undefined
    })
    expect(open.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(UNLIMITED)
  })
})

describe("the client's address", () => {
  const read = addressReader(['10.0.0.0/8', '2001:db8::1'])
  const cases: [peer: string | undefined, header: string | undefined, address: string][] = [
    ['192.0.2.1', undefined, '192.0.2.1'],
    ['192.0.2.1', '198.51.100.1', '192.0.2.1'],
    ['10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', '203.0.113.9, 198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', '203.0.113.9, 198.51.100.1, 10.9.9.9', '198.51.100.1'],
    ['10.1.2.3', '10.4.4.4, 10.5.5.5', '10.4.4.4'],
    ['10.1.2.3', 'unknown', '10.1.2.3'],
    ['10.1.2.3', '198.51.100.1, nonsense', '10.1.2.3'],
    ['10.1.2.3', '198.51.100.1:4711', '198.51.100.1'],
    ['2001:db8::1', '[2001:db8:1::5]:443', '2001:db8:1::5'],
    ['::ffff:192.0.2.1', undefined, '192.0.2.1'],
    [undefined, '198.51.100.1', 'unknown'],
  ]
  it.each(cases)('%s with %s is %s', (peer, header, address) => {
    expect(read(peer, header)).toBe(address)
  })

  it('is counted by the network where it is IPv6', () => {
    expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe(networkOf('2001:db8:1:2::1'))
    expect(networkOf('2001:db8:1:2::1')).not.toBe(networkOf('2001:db8:1:3::1'))
    expect(networkOf('192.0.2.1')).toBe('192.0.2.1')
    expect(networkOf('unknown')).toBe('unknown')
  })
})
