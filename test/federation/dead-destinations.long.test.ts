import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Account, type Api, openApi, register, sendText } from '../support/api.ts'
import { type DeadServers, letLag, openDeadServers, putIntoRoom } from '../support/dead-servers.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'

/** 10,000 for the full run. */
const DEAD = Number(process.env.DEAD_DESTINATIONS ?? 300)
const JUST_DIED = 100
const WATCHED_MS = 3_000

let server: TestServer
let api: Api
let alice: Account
let dead: DeadServers
let sent = 0

beforeAll(async () => {
  dead = await openDeadServers(DEAD + JUST_DIED)
  server = await startServer({ server_name: 'hs.test' as TestServer['config']['server_name'] })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
})

afterAll(async () => {
  await api.close()
  await server.close()
  await dead.close()
})

const query = (sql: string, values: unknown[]) => server.database.db.query(sql, values)

async function roomWith(servers: readonly string[]): Promise<string> {
  const body = { preset: 'public_chat' }
  const { room_id: room } = await api.call('POST', '/createRoom', { token: alice.token, body })
  await putIntoRoom(query, room, servers)
  return room
}

const say = (room: string) => sendText(api, alice.token, room, `t${sent++}`, 'is anybody there?')

/** How many at most fall into a window. */
function busiest(moments: readonly number[], windowMs: number): number {
  return Math.max(0, ...moments.map((from) => moments.filter((at) => at >= from && at < from + windowMs).length))
}

async function failuresOf(servers: readonly string[]): Promise<number[]> {
  const rows = (await query('SELECT failures FROM federation_destination WHERE server = ANY($1::text[])', [
    servers,
  ])) as {
    failures: number
  }[]
  return rows.map(({ failures }) => failures)
}

describe('servers that are gone for good', () => {
  it('cost one attempt a second, all together, and no message waits for them (reliability row R9)', async () => {
    const gone = dead.names.slice(0, DEAD)
    const room = await roomWith(gone)
    await letLag(query, gone, 12)
    await server.restart()
    const begun = performance.now()
    const took: number[] = []
    while (performance.now() - begun < WATCHED_MS) {
      const before = performance.now()
      await say(room)
      took.push(performance.now() - before)
    }
    expect(dead.attempts.length).toBeGreaterThan(0)
    expect(
      busiest(
        dead.attempts.map(({ at }) => at),
        WATCHED_MS,
      ),
    ).toBeLessThanOrEqual(2 + WATCHED_MS / 1_000)
    const median = took.sort((a, b) => a - b)[took.length >> 1]!
    expect(median).toBeLessThan(250)
    // How often each has failed is known over restarts, so that none begins anew.
    await server.restart()
    const failures = await failuresOf(gone)
    expect(failures).toHaveLength(DEAD)
    expect(Math.min(...failures)).toBe(12)
    expect(Math.max(...failures)).toBeGreaterThan(12)
  })
})

describe('servers that have just died', () => {
  it('are not all tried again at the same time', async () => {
    const died = dead.names.slice(DEAD)
    const room = await roomWith(died)
    await server.restart()
    const addresses = new Set(died.map((name) => name.split(':')[0]!))
    const before = dead.attempts.length
    const theirs = () => dead.attempts.slice(before).filter(({ address }) => addresses.has(address))
    await say(room)
    const seen = await waitUntil('second attempts', () => {
      const all = theirs()
      return all.length >= JUST_DIED + 30 ? all : undefined
    })
    const again = seen.filter(({ address }, n) => seen.findIndex((one) => one.address === address) !== n)
    expect(again.length).toBeGreaterThan(20)
    expect(
      busiest(
        again.map(({ at }) => at),
        500,
      ),
    ).toBeLessThanOrEqual(14)
    const first = seen.filter(({ address }, n) => seen.findIndex((one) => one.address === address) === n)
    expect(first).toHaveLength(JUST_DIED)
    expect(again[0]!.at - first[0]!.at).toBeGreaterThan(1_000)
  })
})
