import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import type { ServerName } from '../../src/core/ids.ts'
import { createServerQueues } from '../../src/domain/federation/server-queues.ts'
import { MAX_WAITING_PEER_BYTES } from '../../src/domain/limits.ts'
import type { Account } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger, type Stranger } from '../support/stranger.ts'
import { waitUntil } from '../support/wait.ts'

const F = '/_matrix/federation/v1'

let street: Neighbourhood
let home: Neighbour
let greedy: Stranger
let modest: Stranger
let alice: Account

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open({
    federation: { requests_at_once: 1, requests_waiting: 2 },
    rate_limits: { enabled: true, federation: { per_second: 0.001, burst: 6 } },
  })
  greedy = await openStranger(street.authority)
  modest = await openStranger(street.authority)
  alice = await home.person('alice')
})
afterAll(async () => {
  await Promise.all([greedy.close(), modest.close()])
  await street.close()
})

const ask = (by: Stranger, uri: string, how = {}) =>
  by.ask({ name: home.name, url: home.server.baseUrl }, 'GET', uri, how)
const profile = () => `${F}/query/profile?user_id=${encodeURIComponent(alice.userId)}`
let sent = 0
const transaction = () => {
  const body = { origin: greedy.name, origin_server_ts: 1, pdus: [] }
  return greedy.ask({ name: home.name, url: home.server.baseUrl }, 'PUT', `${F}/send/${sent++}`, { body })
}

describe('a server that asks much', () => {
  test('waits for itself alone, and is told when too much of it waits', async () => {
    // Each costs one of the six that strangers have, once.
    await Promise.all([ask(greedy, profile()), ask(modest, profile())])
    const { db } = home.server.database
    let release = () => {}
    const held = db.tx(async (tx) => {
      await tx.query('LOCK TABLE federation_txn IN SHARE MODE')
      await new Promise<void>((resolve) => {
        release = resolve
      })
    })
    await waitUntil('the lock', async () => {
      const rows = await db.query(
        "SELECT 1 FROM pg_locks WHERE relation = 'federation_txn'::regclass AND mode = 'ShareLock' AND granted",
      )
      return rows.length > 0
    })
    const answers: number[] = []
    const flood = Array.from({ length: 8 }, async () => {
      const answer = await transaction()
      answers.push(answer.status)
      return answer
    })
    await waitUntil('the refusals', () => answers.length === 5)
    expect(answers).toEqual([429, 429, 429, 429, 429])
    expect((await ask(modest, profile())).status).toBe(200)
    release()
    await held
    const all = await Promise.all(flood)
    expect(answers.slice(5)).toEqual([200, 200, 200])
    expect(all.find(({ status }) => status === 429)?.body).toEqual({
      errcode: 'M_LIMIT_EXCEEDED',
      error: 'Too many requests of your server wait here already.',
      retry_after_ms: 3_000,
    })
    expect((await ask(greedy, profile())).status).toBe(200)
  })
})

describe('what anybody may ask', () => {
  it('is limited by address, and servers that are known go on', async () => {
    const made = { origin: 'localhost:1' }
    expect((await ask(greedy, profile(), made)).status).toBe(401)
    const paths = ['/_matrix/key/v2/server', `${F}/version`, '/_matrix/key/v2/query/localhost:2']
    for (const path of paths) expect((await home.api.request('GET', path)).status).toBe(200)
    for (const path of [...paths, `${F}/openid/userinfo?access_token=x`]) {
      const { status, body } = await home.api.request('GET', path)
      expect([path, status, body.errcode]).toEqual([path, 429, 'M_LIMIT_EXCEEDED'])
      expect(body.retry_after_ms).toBeGreaterThan(0)
    }
    const invented = await ask(greedy, profile(), { origin: 'localhost:3' })
    expect([invented.status, invented.body.errcode]).toEqual([429, 'M_LIMIT_EXCEEDED'])
    expect((await ask(greedy, profile())).status).toBe(200)
  })
})

describe('the queues of servers', () => {
  const queuesOf = (requests_at_once: number, requests_waiting: number) =>
    createServerQueues({
      config: { federation: { enabled: true, allow: [], deny: [], requests_at_once, requests_waiting } },
    })
  const held = (bytes: number) => ({ bytes, signal: new AbortController().signal })
  const [a, b] = ['a.example', 'b.example'] as ServerName[] as [ServerName, ServerName]

  test('keep the order, and never do more of one server at once', async () => {
    const queues = queuesOf(3, 100)
    const order: number[] = []
    let running = 0
    let most = 0
    await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        queues.run(a, held(1), async () => {
          most = Math.max(most, ++running)
          await setImmediate()
          order.push(index)
          running--
          if (index % 7 === 0) throw new Error('as it happens')
        }),
      ).map((each) => each.catch(() => {})),
    )
    expect(most).toBe(3)
    expect(order).toEqual(Array.from({ length: 60 }, (_, index) => index))
    expect(queues.waiting()).toBe(0)
  })

  test('are left by who goes away, whose place the next one has', async () => {
    const queues = queuesOf(1, 2)
    let end = () => {}
    const first = queues.run(a, held(0), () => new Promise<void>((resolve) => (end = resolve)))
    const gone = new AbortController()
    const second = queues.run(a, { bytes: 5, signal: gone.signal }, () => 'never')
    const third = queues.run(a, held(5), () => 'third')
    await expect(queues.run(a, held(1), () => 1)).rejects.toMatchObject({ errcode: 'M_LIMIT_EXCEEDED' })
    gone.abort()
    await expect(second).rejects.toMatchObject({ status: 400 })
    const fourth = queues.run(a, held(1), () => 'fourth')
    end()
    await first
    expect(await Promise.all([third, fourth])).toEqual(['third', 'fourth'])
    expect(queues.waiting()).toBe(0)
  })

  test('hold so many bytes together and no more', async () => {
    const queues = queuesOf(1, 100)
    let end = () => {}
    const first = queues.run(a, held(0), () => new Promise<void>((resolve) => (end = resolve)))
    const second = queues.run(a, held(MAX_WAITING_PEER_BYTES - 5), () => 'done')
    await expect(queues.run(a, held(6), () => 1)).rejects.toMatchObject({ errcode: 'M_LIMIT_EXCEEDED' })
    // What need not wait is not counted.
    expect(await queues.run(b, held(MAX_WAITING_PEER_BYTES), () => 'at once')).toBe('at once')
    expect(queues.waiting()).toBe(1)
    end()
    await first
    expect(await second).toBe('done')
    expect(await queues.run(a, held(6), () => 1)).toBe(1)
  })
})
