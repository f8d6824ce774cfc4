import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_TO_DEVICE_PER_SYNC, MAX_TO_DEVICE_WAITING, TO_DEVICE_COUNTED_EVERY } from '../../src/domain/limits.ts'
import { trimToDevice } from '../../src/store/keys/to-device.ts'
import { type Api, createRoom, openApi } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import { type Device, messagesIn, numbersIn, userWithDevices } from './devices.ts'

let server: TestServer
let api: Api
let alice: Device

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  ;[alice] = (await userWithDevices(api, 'alice')) as [Device]
})
afterAll(async () => {
  await api.close()
  await server.close()
})

let people = 0
const somebody = async (count = 1): Promise<Device[]> => userWithDevices(api, `somebody-${++people}`, count)
const sendNumbers = async (to: Device, from: number, upTo: number) => {
  for (let number = from; number <= upTo; number++) {
    await alice.send({ [to.userId]: { [to.deviceId]: { number } } })
  }
}
const range = (from: number, upTo: number) => Array.from({ length: upTo - from + 1 }, (_, index) => from + index)
const countWaiting = async ({ deviceId }: Device): Promise<number> => {
  const [row] = await server.database.db.query<{ count: number }>(
    'SELECT count(*) AS count FROM to_device WHERE device_id = $1',
    [deviceId],
  )
  return row!.count
}

describe('an answer of sync', () => {
  it('holds at most 100 messages; the next ones follow at once, in order', async () => {
    const [bob] = (await somebody()) as [Device]
    await bob.sync()
    await sendNumbers(bob, 1, 2 * MAX_TO_DEVICE_PER_SYNC + 7)
    expect(numbersIn(await bob.sync({ timeout: 20_000 }))).toEqual(range(1, 100))
    expect(numbersIn(await bob.sync({ timeout: 20_000 }))).toEqual(range(101, 200))
    expect(numbersIn(await bob.sync({ timeout: 20_000 }))).toEqual(range(201, 207))
    expect(numbersIn(await bob.sync())).toEqual([])
  })

  it('never parts the two messages of one call', async () => {
    const [bob] = (await somebody()) as [Device]
    await sendNumbers(bob, 1, 99)
    await alice.send({ [bob.userId]: { [bob.deviceId]: { number: 100 }, '*': { number: 101 } } })
    expect(numbersIn(await bob.sync())).toEqual(range(1, 99))
    expect(numbersIn(await bob.sync())).toEqual([100, 101])
    expect(numbersIn(await bob.sync())).toEqual([])
  })

  it('also has the other news while messages are left over', async () => {
    const [bob] = (await somebody()) as [Device]
    const own = `/user/${encodeURIComponent(bob.userId)}/account_data/test`
    await bob.sync()
    await sendNumbers(bob, 1, 150)
    await api.call('PUT', `${own}.a`, { token: bob.token, body: { a: 1 } })
    const first = await bob.sync()
    expect(first.account_data.events).toEqual([{ type: 'test.a', content: { a: 1 } }])
    await api.call('PUT', `${own}.b`, { token: bob.token, body: { b: 1 } })
    const second = await bob.sync()
    expect(second.account_data.events).toEqual([{ type: 'test.b', content: { b: 1 } }])
    expect([...numbersIn(first), ...numbersIn(second)]).toEqual(range(1, 150))
  })

  it('comes at once when a message is sent, to all devices that it is for', async () => {
    const [bob, other] = (await somebody(2)) as [Device, Device]
    await bob.sync()
    await other.sync()
    const waiting = [bob.sync({ timeout: 50_000 }), other.sync({ timeout: 50_000 })]
    await alice.send({ [bob.userId]: { '*': { number: 1 } } })
    const begun = performance.now()
    expect((await Promise.all(waiting)).map(numbersIn)).toEqual([[1], [1]])
    expect(performance.now() - begun).toBeLessThan(40_000)
  })
})

describe('a message', () => {
  it('is given again when the answer with it was lost', async () => {
    const [bob] = (await somebody()) as [Device]
    const since = (await bob.sync()).next_batch
    await sendNumbers(bob, 1, 3)
    for (let lost = 0; lost < 3; lost++) expect(numbersIn(await bob.sync({ since }))).toEqual([1, 2, 3])
    expect(await countWaiting(bob)).toBe(3)
  })

  it('is removed when the client comes back with the token after it, and given to no token any more', async () => {
    const [bob] = (await somebody()) as [Device]
    const before = (await bob.sync()).next_batch
    await sendNumbers(bob, 1, 2)
    const after = (await bob.sync()).next_batch
    await bob.sync({ since: after })
    expect(await countWaiting(bob)).toBe(0)
    expect(numbersIn(await bob.sync({ since: before }))).toEqual([])
    const fresh = await api.call('GET', '/sync', { token: bob.token })
    expect(messagesIn(fresh)).toEqual([])
  })

  it('that nobody came for is in a first sync', async () => {
    const [bob] = (await somebody()) as [Device]
    await sendNumbers(bob, 1, 2)
    expect(numbersIn(await bob.sync())).toEqual([1, 2])
    expect(numbersIn(await bob.sync())).toEqual([])
  })

  it('survives a restart until it is acknowledged, and what was acknowledged does not come back with one', async () => {
    const [bob] = (await somebody()) as [Device]
    const first = (await bob.sync()).next_batch
    await sendNumbers(bob, 1, 2)
    const second = (await bob.sync()).next_batch
    await server.restart()
    expect(numbersIn(await bob.sync({ since: first }))).toEqual([1, 2])
    await sendNumbers(bob, 3, 3)
    expect(numbersIn(await bob.sync({ since: second }))).toEqual([3])
    await server.restart()
    expect(numbersIn(await bob.sync({ since: first }))).toEqual([3])
    expect(numbersIn(await bob.sync())).toEqual([])
  })

  it('is not given by a sync that began before another acknowledged it', async () => {
    const [bob] = (await somebody()) as [Device]
    await createRoom(api, bob.token)
    const before = (await bob.sync()).next_batch
    await sendNumbers(bob, 1, 1)
    const after = (await bob.sync()).next_batch
    expect(numbersIn(await bob.sync({ since: before }))).toEqual([1])
    const { db } = server.database
    // The older sync is held up after it has read the inbox, by a table that it reads later.
    const { older } = await db.tx(async (tx) => {
      await tx.query('LOCK TABLE receipt IN ACCESS EXCLUSIVE MODE')
      const older = api.call('GET', '/sync?full_state=true', { token: bob.token })
      older.catch(() => undefined)
      await waitUntil('the older sync waits', async () => {
        const waiting = await tx.query(`SELECT FROM pg_locks WHERE relation = 'receipt'::regclass AND NOT granted`)
        return waiting.length > 0
      })
      expect(numbersIn(await bob.sync({ since: after }))).toEqual([])
      return { older }
    })
    expect(messagesIn(await older)).toEqual([])
  })

  it('goes with its device', async () => {
    const [bob, other] = (await somebody(2)) as [Device, Device]
    await sendNumbers(other, 1, 3)
    await api.call('POST', '/logout', { token: other.token, body: {} })
    expect(await countWaiting(other)).toBe(0)
    await alice.send({ [bob.userId]: { '*': { number: 4 } } })
    expect(numbersIn(await bob.sync())).toEqual([4])
    expect(await countWaiting(other)).toBe(0)
  })

  it('of before a login stays for the device that logs in again', async () => {
    const [bob] = (await somebody()) as [Device]
    await sendNumbers(bob, 1, 1)
    const body = {
      type: 'm.login.password',
      identifier: { type: 'm.id.user', user: bob.userId },
      password: 'correct horse battery staple',
      device_id: bob.deviceId,
    }
    const { access_token: token } = await api.call('POST', '/login', { body })
    expect(numbersIn(await api.call('GET', '/sync', { token }))).toEqual([1])
  })
})

describe('tokens', () => {
  it('of the time before messages to devices are understood', async () => {
    const [bob] = (await somebody()) as [Device]
    const token = (await bob.sync()).next_batch
    expect(token).toMatch(/^s\d+_\d+_[0-9a-f]+\.\d+$/)
    await sendNumbers(bob, 1, 1)
    expect(numbersIn(await bob.sync({ since: token }))).toEqual([1])
  })

  it('from ahead of a database that was restored acknowledge nothing that is still to come', async () => {
    const [bob] = (await somebody()) as [Device]
    const [, events, rest] = /^(s\d+_)\d+(_.*)$/.exec((await bob.sync()).next_batch) as unknown as [0, string, string]
    const ahead = `${events}999999999${rest}`
    const { next_batch: since } = await bob.sync({ since: ahead })
    await sendNumbers(bob, 1, 1)
    expect(numbersIn(await bob.sync({ since }))).toEqual([1])
  })
})

it('a sync of a device for which nothing waits does not ask the table of messages', async () => {
  const [bob, other] = (await somebody(2)) as [Device, Device]
  await sendNumbers(bob, 1, 1)
  expect(await bob.readAll()).toHaveLength(1)
  await other.sync()
  await alice.send({ [alice.userId]: { '*': {} } })
  await server.database.db.tx(async (tx) => {
    await tx.query('LOCK TABLE to_device IN ACCESS EXCLUSIVE MODE')
    const signal = AbortSignal.timeout(10_000)
    for (const device of [bob, other]) {
      for (let time = 0; time < 3; time++) expect(messagesIn(await device.sync({ signal }))).toEqual([])
      await device.sync({ timeout: 50, signal })
    }
  })
})

it('an inbox is kept near its cap, and a flood displaces its own messages', async () => {
  const [bob] = (await somebody()) as [Device]
  const [carol] = (await somebody()) as [Device]
  for (let number = 1; number <= 20; number++) await carol.send({ [bob.userId]: { '*': { number } } })
  await server.database.db.tx((tx) =>
    tx.query(
      `INSERT INTO to_device (user_nid, device_id, position, is_to_all, sender, type, content)
       SELECT user_nid, device_id, -n, true, $2, 'm.flood', '{"number":0}' FROM device, generate_series(1, $3::int) AS n WHERE device_id = $1`,
      [bob.deviceId, alice.userId, MAX_TO_DEVICE_WAITING],
    ),
  )
  const bodies = range(1, TO_DEVICE_COUNTED_EVERY)
  await Promise.all(bodies.map((number) => alice.send({ [bob.userId]: { '*': { number: -number } } })))
  const waiting = await countWaiting(bob)
  expect(waiting).toBeLessThan(MAX_TO_DEVICE_WAITING + TO_DEVICE_COUNTED_EVERY)
  expect(waiting).toBeGreaterThanOrEqual(MAX_TO_DEVICE_WAITING)
  const [kept] = await server.database.db.query<{ carols: number; newest: number }>(
    `SELECT count(*) FILTER (WHERE sender = $2) AS carols, count(*) FILTER (WHERE sender <> $2 AND position > 0) AS newest
     FROM to_device WHERE device_id = $1`,
    [bob.deviceId, carol.userId],
  )
  expect(kept).toEqual({ carols: 20, newest: TO_DEVICE_COUNTED_EVERY })
})

it('an inbox is kept below a number of bytes as well, and long messages displace those of their sender', async () => {
  const [bob] = (await somebody()) as [Device]
  const [carol] = (await somebody()) as [Device]
  await carol.send({ [bob.userId]: { '*': { number: 1 } } })
  const text = 'x'.repeat(1_000)
  for (let number = 1; number <= 10; number++) await alice.send({ [bob.userId]: { '*': { number, text } } })
  const left = async () => {
    const rows = await server.database.db.query<{ sender: string; content: string }>(
      'SELECT sender, content FROM to_device WHERE device_id = $1 ORDER BY position',
      [bob.deviceId],
    )
    return rows.map(({ sender, content }) => `${sender} ${JSON.parse(content).number}`)
  }
  const [{ user_nid: userNid }] = (await server.database.db.query<{ user_nid: number }>(
    'SELECT user_nid FROM device WHERE device_id = $1',
    [bob.deviceId],
  )) as [{ user_nid: number }]
  const trim = (messages: number, bytes: number) =>
    server.database.db.tx((tx) => trimToDevice(tx, { userNid, deviceId: bob.deviceId }, { messages, bytes }))
  await trim(100, 20_000)
  expect(await left()).toHaveLength(11)
  await trim(100, 4_000)
  expect(await left()).toEqual([`${carol.userId} 1`, ...[8, 9, 10].map((number) => `${alice.userId} ${number}`)])
  await trim(2, 4_000)
  expect(await left()).toEqual([`${carol.userId} 1`, `${alice.userId} 10`])
})
