import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { MAX_DEHYDRATED_DATA_BYTES, MAX_DEHYDRATED_EVENTS } from '../../src/domain/limits/dehydrated-devices.ts'
import { MAX_DEVICES_PER_USER } from '../../src/domain/limits.ts'
import { type House, openHouse, type Person } from '../rooms/people.ts'
import { type Json, PASSWORD } from '../support/api.ts'
import { deviceMaker, newPublicKey } from './key-maker.ts'

const PATH = '/_matrix/client/unstable/org.matrix.msc3814.v1/dehydrated_device'
const SIGNED = 'signed_curve25519'

let house: House
let alice: Person
let bob: Person
let sent = 0

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
})
afterAll(() => house.close())
beforeEach(async () => {
  await house.api.request('DELETE', PATH, { token: alice.token })
})

const ask = (method: string, path: string, body?: Json, who = alice) =>
  house.api.request(method, path, { token: who.token, ...(body !== undefined && { body }) })

/** The body that makes a new dehydrated device. */
function newDevice(changes: object = {}): Json {
  const deviceId = newPublicKey()
  const maker = deviceMaker({ userId: alice.userId, deviceId })
  const keys = { [`curve25519:${deviceId}`]: deviceId, [`ed25519:${deviceId}`]: maker.key.publicKey }
  return {
    device_id: deviceId,
    device_data: { algorithm: 'org.matrix.msc3814.v2', device_pickle: 'x', nonce: 'y' },
    initial_device_display_name: 'Dehydrated device',
    device_keys: maker.identity({ dehydrated: true, keys }),
    one_time_keys: maker.keys(2),
    fallback_keys: maker.named(`${SIGNED}:fallback`, { fallback: true }),
    ...changes,
  }
}

async function put(body = newDevice()): Promise<string> {
  expect(await ask('PUT', PATH, body)).toEqual({ status: 200, body: { device_id: body.device_id } })
  return body.device_id
}

const write = (deviceId: string, number: number) =>
  bob.call('PUT', `/sendToDevice/m.room.encrypted/d${sent++}`, {
    messages: { [alice.userId]: { [deviceId]: { number } } },
  })

const claim = async (deviceId: string) => {
  const wanted = { one_time_keys: { [alice.userId]: { [deviceId]: SIGNED } } }
  return (await bob.call('POST', '/keys/claim', wanted)).one_time_keys[alice.userId]?.[deviceId]
}

it('is a device whose keys others see and claim, and which its user finds', async () => {
  const body = newDevice()
  const since = (await bob.call('GET', '/sync?timeout=0')).next_batch
  const deviceId = await put(body)
  expect((await ask('GET', PATH)).body).toEqual({ device_id: deviceId, device_data: body.device_data })
  const news = await bob.call('GET', `/sync?timeout=0&since=${since}`)
  expect(news.device_lists.changed).toContain(alice.userId)
  const seen = await bob.call('POST', '/keys/query', { device_keys: { [alice.userId]: [] } })
  expect(seen.device_keys[alice.userId][deviceId]).toMatchObject({ dehydrated: true })
  expect(Object.keys(await claim(deviceId))).toHaveLength(1)
  await claim(deviceId)
  expect(await claim(deviceId)).toEqual(body.fallback_keys)
})

it('keeps its messages for as long as it is there, and gives them in batches', async () => {
  const deviceId = await put()
  const count = MAX_DEHYDRATED_EVENTS * 2 + 10
  for (let i = 0; i < count; i++) await write(deviceId, i)
  const path = `${PATH}/${encodeURIComponent(deviceId)}/events`
  for (let times = 0; times < 2; times++) {
    const numbers: number[] = []
    const batches: number[] = []
    for (let from: string | undefined; ; ) {
      const { body } = await ask('GET', from === undefined ? path : `${path}?from=${from}`)
      numbers.push(...body.events.map(({ content }: Json) => content.number))
      batches.push(body.events.length)
      expect(body.events[0]).toMatchObject({ sender: bob.userId, type: 'm.room.encrypted' })
      from = body.next_batch
      if (from === undefined) break
    }
    expect(numbers).toEqual(Array.from({ length: count }, (_, index) => index))
    expect(batches).toEqual([MAX_DEHYDRATED_EVENTS, MAX_DEHYDRATED_EVENTS, 10])
  }
  const { body } = await ask('POST', path, {})
  const next = await ask('POST', path, { next_batch: body.next_batch })
  expect(next.body.events[0].content.number).toBe(MAX_DEHYDRATED_EVENTS)
  expect((await ask('GET', `${path}?from=nonsense`)).status).toBe(400)
})

it('is replaced in one step: nobody can claim keys of the one before', async () => {
  const [first, second] = [await put(), await put()]
  expect((await ask('GET', PATH)).body.device_id).toBe(second)
  expect(await claim(first)).toBeUndefined()
  const path = `${PATH}/${encodeURIComponent(first)}/events`
  expect(await ask('GET', path)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
  const { devices } = (await ask('GET', '/devices')).body
  expect(devices.map(({ device_id }: Json) => device_id)).not.toContain(first)
  expect(await claim(second)).toBeDefined()
})

it('is the only one, however many are put at once', async () => {
  const before = (await ask('GET', '/devices')).body.devices.length
  await Promise.all([put(), put(), put(), put()])
  expect((await ask('GET', '/devices')).body.devices).toHaveLength(before + 1)
})

it('takes its sessions along when it is replaced', async () => {
  const login = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'alice' }, password: PASSWORD }
  const { access_token: token } = (await ask('POST', '/login', { ...login, device_id: await put() })).body
  const whoami = () => house.api.request('GET', '/account/whoami', { token })
  expect((await whoami()).status).toBe(200)
  await put()
  expect(await whoami()).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } })
})

it('may be uploaded once more', async () => {
  const body = newDevice()
  await put(body)
  await write(body.device_id, 1)
  await put({ ...body, device_data: { ...body.device_data, nonce: 'z' } })
  expect((await ask('GET', PATH)).body.device_data.nonce).toBe('z')
  const { body: events } = await ask('GET', `${PATH}/${encodeURIComponent(body.device_id)}/events`)
  expect(events.events).toHaveLength(1)
})

it('goes by its own call, as other devices do, and with all of them', async () => {
  const first = await put()
  expect(await ask('DELETE', PATH)).toEqual({ status: 200, body: { device_id: first } })
  expect(await ask('GET', PATH)).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
  expect(await ask('DELETE', PATH)).toMatchObject({ status: 404 })
  const second = await put()
  const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'alice' }, password: PASSWORD }
  expect((await ask('DELETE', `/devices/${encodeURIComponent(second)}`, { auth })).status).toBe(200)
  expect((await ask('GET', PATH)).status).toBe(404)
  const carol = await house.person('carol')
  const deviceId = newPublicKey()
  const maker = deviceMaker({ userId: carol.userId, deviceId })
  const keys = { [`curve25519:${deviceId}`]: deviceId, [`ed25519:${deviceId}`]: maker.key.publicKey }
  const identity = maker.identity({ dehydrated: true, keys })
  const body = {
    ...newDevice(),
    device_id: deviceId,
    device_keys: identity,
    one_time_keys: {},
    fallback_keys: maker.keys(1),
  }
  expect((await ask('PUT', PATH, body, carol)).status).toBe(200)
  await carol.call('POST', '/logout/all', {})
  const rows = await house.server.database.db.query('SELECT 1 AS one FROM dehydrated_device WHERE device_id = $1', [
    deviceId,
  ])
  expect(rows).toEqual([])
})

it('refuses what is no dehydrated device', async () => {
  const good = newDevice()
  const { device_keys, fallback_keys, ...rest } = good
  const long = { algorithm: 'x', device_pickle: 'x'.repeat(MAX_DEHYDRATED_DATA_BYTES) }
  const { dehydrated: _, ...plain } = device_keys
  const bad: [Json, string][] = [
    [{ ...rest, fallback_keys }, 'M_MISSING_PARAM'],
    [{ ...good, fallback_keys: {} }, 'M_MISSING_PARAM'],
    [{ ...good, device_data: {} }, 'M_MISSING_PARAM'],
    [{ ...good, device_data: long }, 'M_TOO_LARGE'],
    [{ ...good, device_keys: plain }, 'M_INVALID_PARAM'],
    [{ ...good, device_id: alice.deviceId }, 'M_INVALID_PARAM'],
    [{ ...good, device_id: newPublicKey() }, 'M_INVALID_PARAM'],
  ]
  for (const [body, errcode] of bad) expect((await ask('PUT', PATH, body)).body.errcode).toBe(errcode)
  expect((await ask('GET', PATH)).status).toBe(404)
})

it('stays when a login removes the devices that were unused for longest', async () => {
  const deviceId = await put()
  await house.server.database.db.tx((tx) =>
    tx.query(
      `INSERT INTO device (user_nid, device_id, created_at, last_seen_at)
       SELECT user_nid, 'OLD' || n, $2::bigint + n, $2::bigint + n FROM matrix_user, generate_series(1, $3) n WHERE user_id = $1`,
      [alice.userId, Date.now() + 60_000, MAX_DEVICES_PER_USER],
    ),
  )
  const body = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'alice' }, password: PASSWORD }
  const { device_id: newest } = await house.api.call('POST', '/login', { body })
  expect((await ask('GET', PATH)).status).toBe(401)
  const [kept] = await house.server.database.db.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM device JOIN matrix_user USING (user_nid) WHERE user_id = $1 AND device_id <> $2',
    [alice.userId, deviceId],
  )
  expect(kept!.count).toBe(MAX_DEVICES_PER_USER)
  const still = await house.server.database.db.query('SELECT 1 AS one FROM device WHERE device_id = $1', [deviceId])
  expect([newest !== undefined, still.length]).toEqual([true, 1])
})
