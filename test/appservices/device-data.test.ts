import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import type { ServerName } from '../../src/core/ids.ts'
import type { E2eServices } from '../../src/domain/e2e/e2e-services.ts'
import { deviceMaker } from '../keys/key-maker.ts'
import { type Account, createRoom, type Json, join, register, syncPath } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'
import { startService, TAKES_ALL, type TestService } from './service.ts'
import { as, makeGhost, openWorld, registration, type World } from './world.ts'

/** Who encrypts, and takes all from transactions. */
let crypt: TestService
/** Who asks for what passes only, and may sync besides. */
let eph: TestService
/** Who asks for nothing. */
let plain: TestService
let world: World
let alice: Account
let bob: Account
const wishes = { receive_ephemeral: true, 'org.matrix.msc3202': true }
const cryptReg = registration('crypt', wishes)
const ephReg = registration('eph', { 'de.sorunome.msc2409.push_ephemeral': true })
const plainReg = registration('plain')

beforeAll(async () => {
  ;[crypt, eph, plain] = await Promise.all([startService(), startService(), startService()])
  world = await openWorld([
    { ...cryptReg, url: crypt.url },
    { ...ephReg, url: eph.url },
    { ...plainReg, url: plain.url },
  ])
  ;[alice, bob] = [await register(world.api, 'alice'), await register(world.api, 'bob')]
})
afterAll(async () => {
  await world.close()
  await Promise.all([crypt, eph, plain].map((service) => service.close()))
})
beforeEach(() => {
  for (const service of [crypt, eph, plain]) service.behave(TAKES_ALL)
})

const room = encodeURIComponent
const call = (token: string, method: string, path: string, body?: unknown) =>
  world.api.call(method, path, { token, ...(body !== undefined && { body }) })
/** What a service was sent under a key of its transactions; of a repeated transaction once. */
function received(service: TestService, key: string): Json[] {
  const byPath = new Map(service.transactions().map(({ path, body }) => [path, body]))
  return [...byPath.values()].flatMap((body) => (body[key] === undefined ? [] : [body[key]]))
}
const ephemeral = (service: TestService) => received(service, 'ephemeral').flat()
const messages = (service: TestService) => received(service, 'to_device').flat()
let count = 0
const sendToDevice = (to: Json, from = alice, content: Json = { n: ++count }) =>
  call(from.token, 'PUT', `/sendToDevice/m.test/${++count}`, {
    messages: Object.fromEntries(Object.entries(to).map(([user, device]) => [user, { [device as string]: content }])),
  })
const newsOf = async (reg: { id: string }) =>
  (
    await world.server.database.db.query<{ n: number }>(
      'SELECT count(*) AS n FROM appservice_news WHERE appservice_id = $1',
      [reg.id],
    )
  )[0]!.n
const noNews = (reg: { id: string }) => waitUntil('all to be answered', async () => (await newsOf(reg)) === 0)

/** A ghost with a device, as services make one. */
async function ghostWithDevice(reg: typeof cryptReg, name: string, deviceId: string): Promise<string> {
  const ghost = await makeGhost(world.api, reg, name)
  await call(reg.as_token, 'PUT', as(ghost, `/devices/${deviceId}`), {})
  return ghost
}
async function shareRoom(reg: typeof cryptReg, ghost: string, person = alice): Promise<string> {
  const roomId = await createRoom(world.api, person.token, { preset: 'public_chat' })
  await call(reg.as_token, 'POST', as(ghost, `/join/${room(roomId)}`), {})
  return roomId
}

describe('to_device', () => {
  it('carries messages to devices of its users, with whom they are for, under both names, and empties their inbox', async () => {
    const ghost = await ghostWithDevice(cryptReg, '_crypt_a', 'DEV')
    await sendToDevice({ [ghost]: 'DEV', [bob.userId]: '*' }, alice, { text: 'x', big: 9007199254740991 })
    const [message] = await waitUntil('the message', () => messages(crypt).length > 0 && messages(crypt))
    expect(message).toEqual({
      ...{ type: 'm.test', sender: alice.userId, to_user_id: ghost, to_device_id: 'DEV' },
      content: { text: 'x', big: 9007199254740991 },
    })
    expect(received(crypt, 'de.sorunome.msc2409.to_device').flat()).toEqual(messages(crypt))
    await noNews(cryptReg)
    const inbox = await call(cryptReg.as_token, 'GET', as(ghost, syncPath({}), '&device_id=DEV'))
    expect(inbox.to_device?.events ?? []).toEqual([])
    // Nobody else's messages are touched.
    expect((await call(bob.token, 'GET', syncPath({}))).to_device.events).toHaveLength(1)
  })

  it('leaves them for who syncs, where the service does not say that it lives on transactions', async () => {
    const ghost = await ghostWithDevice(ephReg, '_eph_a', 'SYNC')
    await sendToDevice({ [ghost]: 'SYNC' })
    await waitUntil('the message', () => messages(eph).length === 1)
    const inbox = await call(ephReg.as_token, 'GET', as(ghost, syncPath({}), '&device_id=SYNC'))
    expect(inbox.to_device.events).toHaveLength(1)
    await noNews(ephReg)
  })

  it('each once and in order, whatever the answers and over a restart of this server', async () => {
    const ghost = await ghostWithDevice(cryptReg, '_crypt_once', 'ONCE')
    const mine = () => messages(crypt).filter(({ to_user_id }) => to_user_id === ghost)
    let tries = 0
    // Every other try is refused after it was heard.
    crypt.behave(() => (tries++ % 2 === 0 ? 500 : [200, {}]))
    const wanted = Array.from({ length: 6 }, (_, n) => ({ n }))
    for (const content of wanted.slice(0, 3)) await sendToDevice({ [ghost]: 'ONCE' }, alice, content)
    await waitUntil('a first try', () => tries > 0)
    await world.server.restart()
    for (const content of wanted.slice(3)) await sendToDevice({ [ghost]: 'ONCE' }, bob, content)
    await waitUntil('all of them', async () => {
      // Whoever calls is up.
      await call(cryptReg.as_token, 'GET', '/account/whoami')
      return mine().length >= wanted.length
    })
    await noNews(cryptReg)
    expect(mine().map(({ content }) => content)).toEqual(wanted)
  })

  it('is for services that ask, and for users of theirs', async () => {
    const ghost = await ghostWithDevice(plainReg, '_plain_a', 'P')
    const before = messages(crypt).length
    await sendToDevice({ [ghost]: 'P', [bob.userId]: '*' })
    const inbox = await call(plainReg.as_token, 'GET', as(ghost, syncPath({}), '&device_id=P'))
    expect(inbox.to_device.events).toHaveLength(1)
    expect([await newsOf(plainReg), messages(crypt).length]).toEqual([0, before])
    expect(plain.transactions().some(({ body }) => Object.keys(body).some((key) => key !== 'events'))).toBe(false)
  })
})

describe('what another server sends', () => {
  test('messages to devices, once, and whose devices changed', async () => {
    const ghost = await ghostWithDevice(cryptReg, '_crypt_far', 'FAR')
    const { receivedMessages } = world.server.services as unknown as Pick<E2eServices, 'receivedMessages'>
    const content = {
      ...{ sender: '@x:far.example', type: 'm.test', message_id: 'm1' },
      messages: { [ghost]: { '*': { far: true } } },
    }
    for (let n = 0; n < 2; n++) await receivedMessages.receive('far.example' as ServerName, content)
    const mine = () => messages(crypt).filter(({ to_user_id }) => to_user_id === ghost)
    await waitUntil('the message', () => mine().length > 0)
    await noNews(cryptReg)
    expect(mine()).toEqual([
      {
        ...{ type: 'm.test', sender: '@x:far.example', to_user_id: ghost, to_device_id: 'FAR' },
        content: { far: true },
      },
    ])
  })
})

describe('a server whose services ask for nothing', () => {
  it('does all the same without a look at what is kept for those that do', async () => {
    const deaf = await startService()
    const reg = registration('deaf', { url: deaf.url })
    const quiet = await openWorld([reg])
    const { api, server } = quiet
    await server.database.db.query('ALTER TABLE appservice_news RENAME TO appservice_news_gone')
    await server.restart()
    const { token, userId } = await register(api, 'somebody')
    const ghost = await makeGhost(api, reg, '_deaf_g')
    await api.call('PUT', as(ghost, '/devices/DEV'), { token: reg.as_token, body: {} })
    const roomId = await createRoom(api, token, { preset: 'public_chat' })
    await api.call('POST', as(ghost, `/join/${room(roomId)}`), { token: reg.as_token, body: {} })
    const path = `/rooms/${room(roomId)}`
    const sent = await api.call('PUT', `${path}/send/m.room.message/1`, { token, body: { body: 'x' } })
    await api.call('POST', `${path}/receipt/m.read/${room(sent.event_id)}`, { token, body: {} })
    await api.call('PUT', `${path}/typing/${userId}`, { token, body: { typing: true, timeout: 1_000 } })
    await api.call('PUT', `/presence/${userId}/status`, { token, body: { presence: 'online' } })
    const body = { messages: { [ghost]: { DEV: {} } } }
    await api.call('PUT', '/sendToDevice/m.test/1', { token, body })
    const one_time_keys = { [ghost]: { DEV: 'signed_curve25519' } }
    await api.call('POST', '/keys/claim', { token, body: { one_time_keys } })
    await api.call('GET', syncPath({}), { token })
    await deaf.until('the message', ({ event_id }) => event_id === sent.event_id)
    expect(deaf.transactions().every(({ body }) => Object.keys(body).length === 1)).toBe(true)
    await quiet.close()
    await deaf.close()
  })
})

describe('ephemeral', () => {
  const presences = (service: TestService, userId: string) =>
    ephemeral(service).filter(({ type, sender }) => type === 'm.presence' && sender === userId)
  const present = (who: Account, presence: string, status_msg?: string) =>
    call(who.token, 'PUT', `/presence/${who.userId}/status`, { presence, status_msg })

  test('m.presence of who shares a room with its users, and of its users themselves', async () => {
    const ghost = await makeGhost(world.api, cryptReg, '_crypt_presence')
    await shareRoom(cryptReg, ghost)
    await present(bob, 'online', 'a stranger')
    await present(alice, 'online', 'at work')
    await waitUntil('her presence', () => presences(crypt, alice.userId).length > 0)
    const event = presences(crypt, alice.userId).at(-1)
    expect(event).toEqual({
      ...{ type: 'm.presence', sender: alice.userId },
      content: {
        ...{ presence: 'online', status_msg: 'at work', currently_active: true },
        last_active_ago: expect.any(Number),
      },
    })
    await call(cryptReg.as_token, 'PUT', as(ghost, `/presence/${ghost}/status`), { presence: 'unavailable' })
    await waitUntil('its own', () => presences(crypt, ghost).length > 0)
    expect(presences(crypt, bob.userId)).toEqual([])
  })

  test('the newest of each user and room takes the place of older ones while the service is away', async () => {
    const ghost = await makeGhost(world.api, cryptReg, '_crypt_newest')
    const roomId = await shareRoom(cryptReg, ghost)
    await noNews(cryptReg)
    crypt.behave(() => 503)
    const before = crypt.transactions().length
    const events: string[] = []
    for (let n = 0; n < 5; n++) {
      const path = `/rooms/${room(roomId)}/send/m.room.message/r${n}`
      events.push((await call(alice.token, 'PUT', path, { body: `${n}` })).event_id)
      await call(alice.token, 'POST', `/rooms/${room(roomId)}/receipt/m.read/${room(events[n]!)}`, {})
      await present(alice, 'online', `status ${n}`)
    }
    await waitUntil('the last of them', async () => {
      const rows = await world.server.database.db.query<{ content: string }>(
        "SELECT content FROM appservice_news WHERE appservice_id = $1 AND kind = 'receipt'",
        [cryptReg.id],
      )
      return rows.length === 1 && rows[0]!.content.includes(events[4]!)
    })
    expect(await newsOf(cryptReg)).toBeLessThanOrEqual(3)
    crypt.behave(TAKES_ALL)
    await call(cryptReg.as_token, 'GET', '/account/whoami')
    await noNews(cryptReg)
    const after = crypt
      .transactions()
      .slice(before)
      .flatMap(({ body }) => body.ephemeral ?? [])
    const receipts = after.filter(({ type }: Json) => type === 'm.receipt')
    expect(receipts.at(-1)).toMatchObject({
      room_id: roomId,
      content: { [events[4]!]: { 'm.read': { [alice.userId]: { ts: expect.any(Number) } } } },
    })
    const status = after.filter(({ type }: Json) => type === 'm.presence').at(-1)
    expect(status.content.status_msg).toBe('status 4')
  })

  test('m.receipt: private ones of its own users alone', async () => {
    const ghost = await makeGhost(world.api, cryptReg, '_crypt_private')
    const roomId = await shareRoom(cryptReg, ghost)
    const path = `/rooms/${room(roomId)}/send/m.room.message/private`
    const { event_id } = await call(alice.token, 'PUT', path, { body: 'x' })
    const receipt = `/rooms/${room(roomId)}/receipt/m.read.private/${room(event_id)}`
    await call(alice.token, 'POST', receipt, {})
    await call(cryptReg.as_token, 'POST', as(ghost, receipt), {})
    const privates = () =>
      ephemeral(crypt).flatMap(({ content, room_id }) =>
        room_id === roomId
          ? Object.values(content).flatMap((kinds: Json) => Object.keys(kinds['m.read.private'] ?? {}))
          : [],
      )
    await waitUntil('its receipt', () => privates().length > 0)
    expect(privates()).toEqual([ghost])
  })
})

describe('device_lists', () => {
  const lists = (kind: 'changed' | 'left') =>
    received(crypt, 'device_lists').flatMap((one) => {
      expect(Object.keys(one)).toEqual(['changed', 'left'])
      return one[kind]
    })

  it('changed: users who share a room with its users, and come to share one; left: those who do no more', async () => {
    const ghost = await makeGhost(world.api, cryptReg, '_crypt_lists')
    const carol = await register(world.api, 'carol')
    const dora = await register(world.api, 'dora')
    const upload = async (who: Account) =>
      call(who.token, 'POST', '/keys/upload', { device_keys: deviceMaker(who).identity() })
    await upload(dora)
    const roomId = await shareRoom(cryptReg, ghost, carol)
    await waitUntil('carol, whose room it came into', () => lists('changed').includes(carol.userId))
    const before = lists('changed').filter((user) => user === carol.userId).length
    await upload(carol)
    await waitUntil('her keys', () => lists('changed').filter((user) => user === carol.userId).length > before)
    expect(lists('changed')).not.toContain(dora.userId)
    await join(world.api, dora.token, roomId)
    await waitUntil('who came', () => lists('changed').includes(dora.userId))
    await call(dora.token, 'POST', `/rooms/${room(roomId)}/leave`, {})
    await waitUntil('who left', () => lists('left').includes(dora.userId))
    await call(cryptReg.as_token, 'POST', as(ghost, `/rooms/${room(roomId)}/leave`), {})
    await waitUntil('whom it left', () => lists('left').includes(carol.userId))
    expect(received(crypt, 'org.matrix.msc3202.device_lists')).toEqual(received(crypt, 'device_lists'))
    expect(received(eph, 'device_lists')).toEqual([])
  })

  it('who still shares another room has not left', async () => {
    const ghost = await makeGhost(world.api, cryptReg, '_crypt_two')
    const erna = await register(world.api, 'erna')
    const [first, second] = [await shareRoom(cryptReg, ghost, erna), await shareRoom(cryptReg, ghost, erna)]
    await call(erna.token, 'POST', `/rooms/${room(first)}/leave`, {})
    await crypt.until('her leave', (event) => event.room_id === first && event.content.membership === 'leave')
    expect(lists('left')).not.toContain(erna.userId)
    await call(erna.token, 'POST', `/rooms/${room(second)}/leave`, {})
    await waitUntil('who left', () => lists('left').includes(erna.userId))
  })
})

describe('device_one_time_keys_count and device_unused_fallback_key_types', () => {
  it('tell what is left of the keys of its users, when somebody took one', async () => {
    const ghost = await ghostWithDevice(cryptReg, '_crypt_keys', 'KEYS')
    const maker = deviceMaker({ userId: ghost, deviceId: 'KEYS' })
    const upload = {
      device_keys: maker.identity(),
      one_time_keys: maker.keys(2),
      fallback_keys: maker.named('signed_curve25519:F'),
    }
    await call(cryptReg.as_token, 'POST', as(ghost, '/keys/upload', '&device_id=KEYS'), upload)
    const claim = () =>
      call(alice.token, 'POST', '/keys/claim', { one_time_keys: { [ghost]: { KEYS: 'signed_curve25519' } } })
    const counts = () => received(crypt, 'device_one_time_keys_count').map((one) => one[ghost]?.KEYS.signed_curve25519)
    const fallbacks = () => received(crypt, 'device_unused_fallback_key_types').map((one) => one[ghost]?.KEYS)
    await claim()
    await waitUntil('one left', () => counts().includes(1))
    expect(fallbacks().at(-1)).toEqual(['signed_curve25519'])
    await claim()
    await claim()
    await waitUntil('the fallback key to be used', () => fallbacks().some((types) => types?.length === 0))
    expect(counts().at(-1)).toBe(0)
    for (const name of ['device_one_time_keys_count', 'device_unused_fallback_key_types']) {
      expect(received(crypt, `org.matrix.msc3202.${name}`)).toEqual(received(crypt, name))
      expect(received(eph, name)).toEqual([])
    }
    await noNews(cryptReg)
  })
})
