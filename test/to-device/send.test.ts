import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_TO_DEVICE_BYTES, MAX_TO_DEVICE_MESSAGES } from '../../src/domain/limits.ts'
import { type Api, openApi } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import { type Device, messagesIn, userWithDevices } from './devices.ts'

let server: TestServer
let api: Api
let alice: Device
let bob: Device
let bobsOther: Device

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  ;[alice] = (await userWithDevices(api, 'alice')) as [Device]
  ;[bob, bobsOther] = (await userWithDevices(api, 'bob', 2)) as [Device, Device]
})
afterAll(async () => {
  await api.close()
  await server.close()
})

const contentsOf = async (device: Device) => messagesIn(await device.sync()).map(({ content }) => content)

describe('PUT sendToDevice', () => {
  it('gives a message to the device that it names, with sender and type, and to no other', async () => {
    const { status, body } = await alice.send({ [bob.userId]: { [bob.deviceId]: { a: [1, 'é'] } } }, { type: 'm.new' })
    expect([status, body]).toEqual([200, {}])
    expect(messagesIn(await bob.sync())).toEqual([{ sender: alice.userId, type: 'm.new', content: { a: [1, 'é'] } }])
    expect(messagesIn(await bobsOther.sync())).toEqual([])
    expect(messagesIn(await alice.sync())).toEqual([])
  })

  it('`*` means all devices of the user, and a device that is named beside it gets both', async () => {
    await alice.send({ [bob.userId]: { '*': { to: 'all' }, [bob.deviceId]: { to: 'one' } } })
    expect(await contentsOf(bob)).toEqual([{ to: 'one' }, { to: 'all' }])
    expect(await contentsOf(bobsOther)).toEqual([{ to: 'all' }])
  })

  it('reaches several users with different messages, the sender among them', async () => {
    const [carol] = (await userWithDevices(api, 'carol')) as [Device]
    await alice.send({
      [bob.userId]: { [bob.deviceId]: { n: 1 } },
      [carol.userId]: { '*': { n: 2 } },
      [alice.userId]: { '*': { n: 3 } },
    })
    expect(await contentsOf(bob)).toEqual([{ n: 1 }])
    expect(await contentsOf(carol)).toEqual([{ n: 2 }])
    expect(await contentsOf(alice)).toEqual([{ n: 3 }])
  })

  it('passes over users and devices that do not exist, and users of other servers', async () => {
    const messages = {
      [bob.userId]: { NOWHERE: {}, 'NUL\0': {}, [bob.deviceId]: { here: true } },
      '@nobody:localhost': { '*': {} },
      '@somebody:elsewhere.test': { '*': {} },
    }
    expect((await alice.send(messages)).status).toBe(200)
    expect(await contentsOf(bob)).toEqual([{ here: true }])
  })

  it('may be called by guests', async () => {
    const { body } = await api.request('POST', '/register?kind=guest', { body: {} })
    const token = body.access_token
    const messages = { [bob.userId]: { [bob.deviceId]: { guest: true } } }
    expect((await api.request('PUT', '/sendToDevice/m.test/g', { token, body: { messages } })).status).toBe(200)
    expect(await contentsOf(bob)).toEqual([{ guest: true }])
  })

  it.each([
    ['no messages', {}, 400, 'M_MISSING_PARAM'],
    ['messages that are no object', { messages: [] }, 400, 'M_BAD_JSON'],
    ['a user without devices', { messages: { '@bob:localhost': 'x' } }, 400, 'M_BAD_JSON'],
    ['a message that is no object', { messages: { '@bob:localhost': { '*': 'x' } } }, 400, 'M_BAD_JSON'],
    ['a key that is no user id', { messages: { bob: { '*': {} } } }, 400, 'M_INVALID_PARAM'],
    [
      'a message above its cap',
      { messages: { '@bob:localhost': { '*': { x: 'x'.repeat(MAX_TO_DEVICE_BYTES) } } } },
      413,
      'M_TOO_LARGE',
    ],
  ])('refuses %s', async (_, body, status, errcode) => {
    const answer = await api.request('PUT', '/sendToDevice/m.test/bad', { token: alice.token, body })
    expect([answer.status, answer.body.errcode]).toEqual([status, errcode])
  })

  it('refuses a call of too many messages, and one that `*` makes too large, and sends nothing of either', async () => {
    await bob.readAll()
    const many = Object.fromEntries(Array.from({ length: MAX_TO_DEVICE_MESSAGES + 1 }, (_, i) => [`D${i}`, {}]))
    expect((await alice.send({ [bob.userId]: { ...many, '*': {} } })).body.errcode).toBe('M_TOO_LARGE')
    const [crowd] = (await userWithDevices(api, 'crowd')) as [Device]
    const { db } = server.database
    await db.tx((tx) =>
      tx.query(
        `INSERT INTO device (user_nid, device_id, created_at) SELECT user_nid, 'D' || n, 0
         FROM matrix_user, generate_series(1, 400) AS n WHERE user_id = $1`,
        [crowd.userId],
      ),
    )
    const message = { x: 'x'.repeat(60_000) }
    const body = { [crowd.userId]: { '*': message }, [bob.userId]: { '*': message } }
    expect((await alice.send(body, { txnId: 'large' })).body.errcode).toBe('M_TOO_LARGE')
    expect(await bob.readAll()).toEqual([])
    expect(await crowd.readAll()).toEqual([])
    // The id is not used up by what was refused.
    await alice.send({ [bob.userId]: { [bob.deviceId]: { small: true } } }, { txnId: 'large' })
    expect(await bob.readAll()).toEqual([{ small: true }])
  })

  it('sends what canonical JSON forbids within this server alone', async () => {
    await bob.readAll()
    expect((await alice.send({ [bob.userId]: { [bob.deviceId]: { x: 1.5 } } })).status).toBe(200)
    expect(await bob.readAll()).toEqual([{ x: 1.5 }])
    const mixed = { [bob.userId]: { '*': { x: 1.5 } }, '@somebody:elsewhere.test': { '*': {} } }
    expect((await alice.send(mixed)).body.errcode).toBe('M_BAD_JSON')
    expect(await bob.readAll()).toEqual([])
  })
})

describe('a transaction id', () => {
  const one = (number: number) => ({ [bob.userId]: { [bob.deviceId]: { number } } })

  it('sends once, of 16 calls at once', async () => {
    await bob.readAll()
    const answers = await Promise.all(Array.from({ length: 16 }, () => alice.send(one(1), { txnId: 'once' })))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(await bob.readAll()).toEqual([{ number: 1 }])
  })

  it('sends once after it was read, and after a restart, in every spelling of the path', async () => {
    for (const prefix of [
      '/_matrix/client/v3',
      '/_matrix/client/r0',
      '/_proto/client/r0',
      '/_proto/client/v3',
      '/_matrix/client/unstable',
    ]) {
      expect((await alice.send(one(2), { txnId: 'again', prefix })).status).toBe(200)
    }
    expect(await bob.readAll()).toEqual([{ number: 2 }])
    await server.restart()
    expect((await alice.send(one(2), { txnId: 'again' })).status).toBe(200)
    expect(await bob.readAll()).toEqual([])
  })

  it('counts for one device and one type', async () => {
    const [first, second] = (await userWithDevices(api, 'dora', 2)) as [Device, Device]
    await first.send(one(1), { txnId: 'same' })
    await second.send(one(2), { txnId: 'same' })
    await first.send(one(3), { txnId: 'same', type: 'm.other' })
    expect(await bob.readAll()).toEqual([{ number: 1 }, { number: 2 }, { number: 3 }])
  })

  it('is forgotten with the device', async () => {
    const [, eve] = (await userWithDevices(api, 'eve', 2)) as [Device, Device]
    await eve.send(one(1), { txnId: 'gone' })
    await api.call('POST', '/logout', { token: eve.token, body: {} })
    const [row] = await server.database.db.query<{ count: number }>(
      'SELECT count(*) AS count FROM to_device_txn WHERE device_id = $1',
      [eve.deviceId],
    )
    expect(row!.count).toBe(0)
    await bob.readAll()
  })
})

it('a message is not lost while the row of a device is locked: by a login, or by a token that is renewed', async () => {
  await bob.readAll()
  const waiting: Promise<unknown>[] = []
  for (const locked of [bob, alice]) {
    await server.database.db.tx(async (tx) => {
      await tx.query('SELECT FROM device WHERE device_id = $1 FOR UPDATE', [locked.deviceId])
      waiting.push(alice.send({ [bob.userId]: { [bob.deviceId]: { locked: locked.userId } } }))
      await waitUntil('the message to wait', async () => {
        const [row] = await server.database.db.query<{ count: number }>(
          `SELECT count(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        )
        return row!.count > 0
      })
    })
    await Promise.all(waiting)
  }
  expect(await bob.readAll()).toEqual([{ locked: bob.userId }, { locked: alice.userId }])
})

it('messages of one sender keep their order while others send too', async () => {
  await bob.readAll()
  const senders = await Promise.all(
    ['f1', 'f2', 'f3', 'f4'].map(async (name) => (await userWithDevices(api, name))[0]!),
  )
  await Promise.all(
    senders.map(async (sender) => {
      for (let number = 0; number < 30; number++)
        await sender.send({ [bob.userId]: { '*': { from: sender.userId, number } } })
    }),
  )
  const all = await bob.readAll()
  expect(all.length).toBe(120)
  for (const { userId } of senders) {
    const numbers = all.filter(({ from }) => from === userId).map(({ number }) => number)
    expect(numbers).toEqual(Array.from({ length: 30 }, (_, number) => number))
  }
})
