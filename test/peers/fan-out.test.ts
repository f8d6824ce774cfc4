import { type AddressInfo, createServer } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { ServerName } from '../../src/core/ids.ts'
import { createFanOut } from '../../src/domain/fan-out.ts'
import { createDestinationLog } from '../../src/domain/federation/sending/destination-log.ts'
import { FAN_OUT_CAPS, MAX_FAN_OUT_AT_ONCE } from '../../src/domain/limits.ts'
import { type Account, type Api, createRoom, openApi, register } from '../support/api.ts'
import { NO_BOUNDS, reached } from '../support/bounds.ts'
import { type DeadServers, openDeadServers, putIntoRoom } from '../support/dead-servers.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'

const { neighbours, strangers, atOnce } = FAN_OUT_CAPS.user

let server: TestServer
let api: Api
let dead: DeadServers
let people = 0

beforeAll(async () => {
  dead = await openDeadServers(10_000)
  server = await startServer({ server_name: 'hs.test' as ServerName })
  api = openApi(server.baseUrl)
})
afterAll(async () => {
  await api.close()
  await server.close()
  await dead.close()
})
beforeEach(() => {
  dead.attempts.length = 0
})

const person = () => register(api, `person${people++}`)
const tried = () => new Set(dead.attempts.map(({ address }) => address))
const to = <T>(servers: readonly string[], value: T) =>
  Object.fromEntries(servers.map((name) => [`@somebody:${name}`, value]))
const query = ({ token }: Account, servers: readonly string[]) =>
  api.call('POST', '/keys/query', { token, body: { device_keys: to(servers, []), timeout: 3_000 } })
const claim = ({ token }: Account, servers: readonly string[]) =>
  api.call('POST', '/keys/claim', { token, body: { one_time_keys: to(servers, { D: 'a' }), timeout: 3_000 } })
const send = ({ token }: Account, servers: readonly string[]) =>
  api.request('PUT', `/sendToDevice/m.x/t${people++}`, { token, body: { messages: to(servers, { D: { a: 1 } }) } })
const kept = async () => {
  const rows = await server.database.db.query<{ server: string }>('SELECT DISTINCT server FROM federation_edu')
  return rows.map((row) => row.server)
}
const statuses = (failures: Record<string, { status: number }>) =>
  Object.values(failures).reduce<Record<number, number>>((sums, { status }) => {
    sums[status] = (sums[status] ?? 0) + 1
    return sums
  }, {})

for (const [name, ask] of [
  ['query', query],
  ['claim', claim],
] as const) {
  test(`A2: keys/${name} that names 10,000 servers asks a few of them, and says so of the others`, async () => {
    const before = await reached(server.metrics(), 'fan-out')
    const { failures } = await ask(await person(), dead.names)
    expect(statuses(failures)).toEqual({ 503: strangers.asked, 429: 10_000 - strangers.asked })
    expect((await reached(server.metrics(), 'fan-out')) - before).toBe(10_000 - strangers.asked)
    expect(tried().size).toBeLessThanOrEqual(strangers.asked)
  })
}

test('A2: a message to devices on many servers of strangers is refused, and nothing is kept of it', async () => {
  const alice = await person()
  const before = await reached(server.metrics(), 'fan-out')
  const { status, body } = await send(alice, dead.names)
  expect([status, body.errcode]).toEqual([413, 'M_TOO_LARGE'])
  expect((await reached(server.metrics(), 'fan-out')) - before).toBe(10_000)
  expect(await kept()).toEqual([])
  expect(tried().size).toBe(0)
})

test('A2: servers that share a room are asked and sent to in larger numbers, within a cap', async () => {
  const alice = await person()
  const roomId = await createRoom(api, alice.token, {})
  const near = dead.names.slice(0, neighbours.sent + 5)
  await putIntoRoom((sql, values) => server.database.db.query(sql, values), roomId, near)
  const { failures } = await query(alice, near.slice(0, neighbours.asked + 5))
  expect(statuses(failures)).toEqual({ 503: neighbours.asked, 429: 5 })
  const refused = await send(alice, near)
  expect([refused.status, refused.body.errcode]).toEqual([413, 'M_TOO_LARGE'])
  expect((await send(alice, near.slice(0, 50))).status).toBe(200)
  expect((await kept()).length).toBe(50)
})

test('A2: who is invited into a shared room is no stranger', async () => {
  const alice = await person()
  const roomId = await createRoom(api, alice.token, {})
  const invited = dead.names.slice(2_000, 2_020)
  const { db } = server.database
  await putIntoRoom((sql, values) => db.query(sql, values), roomId, invited)
  await db.query(
    `UPDATE room_member SET membership = 'invite' FROM room, matrix_user WHERE room_member.room_nid = room.room_nid
     AND matrix_user.user_nid = room_member.user_nid AND room_id = $1 AND user_id LIKE '@somebody:%'`,
    [roomId],
  )
  expect((await send(alice, invited)).status).toBe(200)
})

test('A2: guests reach fewer servers', async () => {
  await server.restart({ registration: { allow_guests: true } })
  const body = await api.call('POST', '/register?kind=guest', { body: {} })
  const guest: Account = { userId: body.user_id, token: body.access_token, deviceId: body.device_id }
  const { failures } = await query(guest, dead.names.slice(0, 50))
  expect(statuses(failures)).toEqual({ 503: FAN_OUT_CAPS.guest.strangers.asked, 429: 47 })
})

test('A2: in the long run a user reaches few servers of strangers, and is told when there are more', async () => {
  const alice = await person()
  const { sent, burst, perSecond } = strangers
  for (let n = 0; n < burst; n += sent) {
    expect((await send(alice, dead.names.slice(3_000 + n, 3_000 + n + sent))).status).toBe(200)
  }
  const before = await reached(server.metrics(), 'fan-out')
  const { status, body } = await send(alice, dead.names.slice(4_000, 4_001))
  expect((await reached(server.metrics(), 'fan-out')) - before).toBe(1)
  expect([status, body.errcode]).toEqual([429, 'M_LIMIT_EXCEEDED'])
  expect(body.retry_after_ms).toBeGreaterThan(0)
  expect(body.retry_after_ms).toBeLessThanOrEqual(1_000 / perSecond)
  expect(statuses((await query(alice, dead.names.slice(4_000, 4_001))).failures)).toEqual({ 429: 1 })
  // Who has been reached before may be so again.
  expect((await send(alice, dead.names.slice(3_000, 3_001))).status).toBe(200)
  expect(statuses((await query(await person(), dead.names.slice(4_000, 4_001))).failures)).toEqual({ 503: 1 })
})

test('A2: keys/query and keys/claim are rate-limited', async () => {
  const alice = await person()
  await server.restart({ rate_limits: { enabled: true, other: { per_second: 0.01, burst: 2 } } })
  const ask = (path: string) =>
    api.request('POST', path, { token: alice.token, body: { device_keys: {}, one_time_keys: {} } })
  const answers = [
    await ask('/keys/query'),
    await ask('/keys/claim'),
    await ask('/keys/query'),
    await ask('/keys/claim'),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 429])
  await server.restart({ rate_limits: { enabled: false } })
})

test('A2: a bounded number of servers is asked at once, for a user and for all, and others get their turn', async () => {
  const fanOut = createFanOut({
    base: {
      config: { server_name: 'hs.test' as ServerName },
      db: server.database.db,
      clock: Date,
      metrics: { bounds: NO_BOUNDS },
      rateLimitOverrides: { get: () => undefined },
    },
    roomBase: { registry: { peek: () => undefined }, partialStateRooms: { all: () => [] } },
  })
  const names = Array.from({ length: 500 }, (_, n) => `s${n}.test` as ServerName)
  const open: (() => void)[] = []
  const by = new Map<number, number>()
  const asking = Array.from({ length: 6 }, (_, userNid) =>
    fanOut.ask({ userNid, isGuest: false }, names, 60_000, () => {
      by.set(userNid, (by.get(userNid) ?? 0) + 1)
      return new Promise<number>((resolve) => open.push(() => resolve(1)))
    }),
  )
  await setImmediate()
  expect(fanOut.asking()).toBe(MAX_FAN_OUT_AT_ONCE)
  expect([...by.values()]).toEqual(Array(MAX_FAN_OUT_AT_ONCE / atOnce).fill(atOnce))
  // The two that had none share what becomes free with the one whose requests ended.
  for (const end of open.splice(0, 10)) end()
  await setImmediate()
  expect(by.get(4)).toBeGreaterThan(0)
  expect(by.get(5)).toBeGreaterThan(0)
  while (open.length > 0) {
    expect(fanOut.asking()).toBeLessThanOrEqual(MAX_FAN_OUT_AT_ONCE)
    for (const end of open.splice(0)) end()
    await setImmediate()
  }
  expect((await Promise.all(asking)).map(({ size }) => size)).toEqual(Array(6).fill(500))
  expect(fanOut.asking()).toBe(0)
})

test('A2: operators see how many servers are being asked', async () => {
  const asked = async () => Number(/^hearth_servers_asked (\d+)$/m.exec(await server.metrics())?.[1])
  const silent = createServer()
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as AddressInfo
  const { token } = await person()
  const body = { device_keys: to([`127.0.0.1:${port}`], []), timeout: 1_000 }
  const answer = api.call('POST', '/keys/query', { token, body })
  await waitUntil('a server that is asked', async () => (await asked()) === 1)
  expect(Object.keys((await answer).failures)).toHaveLength(1)
  expect(await asked()).toBe(0)
  silent.close()
})

test('A2: who had no turn within the time is left out, and takes no place from then on', async () => {
  const fanOut = createFanOut({
    base: {
      config: { server_name: 'hs.test' as ServerName },
      db: server.database.db,
      clock: Date,
      metrics: { bounds: NO_BOUNDS },
      rateLimitOverrides: { get: () => undefined },
    },
    roomBase: { registry: { peek: () => undefined }, partialStateRooms: { all: () => [] } },
  })
  const names = Array.from({ length: atOnce + 10 }, (_, n) => `s${n}.test` as ServerName)
  let asked = 0
  const answers = await fanOut.ask({ userNid: 1, isGuest: false }, names, 50, async (_, leftMs) => {
    asked++
    await new Promise((resolve) => setTimeout(resolve, leftMs + 20))
    return 1
  })
  expect([asked, answers.size, fanOut.asking()]).toEqual([atOnce, atOnce, 0])
})

test('A2: the log speaks of a destination once a minute, unless something graver comes', () => {
  const lines: string[] = []
  let now = 1_000_000
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(line) })
  const say = createDestinationLog({ log, clock: { now: () => now } })
  const [one, other] = ['one.test', 'other.test'] as ServerName[]
  for (let n = 0; n < 1_000; n++) say('info', one!, { n }, 'not taken')
  say('info', other!, {}, 'not taken')
  say('error', one!, {}, 'failed')
  say('error', one!, {}, 'failed')
  now += 60_000
  say('info', one!, { n: 1 }, 'not taken')
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { level: 30, server: one, n: 0, msg: 'not taken' },
    { level: 30, server: other, msg: 'not taken' },
    { level: 50, server: one, unsaid: 999, msg: 'failed' },
    { level: 30, server: one, n: 1, unsaid: 1, msg: 'not taken' },
  ])
})
