import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { Appservice, LogLevel, LogService, MemoryStorageProvider } from 'matrix-bot-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorld, registration, type TestRegistration, type World } from '../appservices/world.ts'
import { deviceMaker } from '../keys/key-maker.ts'
import { type Account, createRoom, type Json, register, sendText } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

let world: World
let person: Account
let bot: Appservice
let reg: TestRegistration
/** What the bot began by itself: the server must not close before its answers. */
const begun: Promise<unknown>[] = []
const begin = (work: Promise<unknown>) => void begun.push(work)

beforeAll(async () => {
  LogService.setLevel(LogLevel.ERROR)
  LogService.muteModule('MatrixHttpClient')
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => probe.once('listening', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  reg = registration('bots', { url: `http://127.0.0.1:${port}`, receive_ephemeral: true, 'org.matrix.msc3202': true })
  world = await openWorld([reg])
  person = await register(world.api, 'person')
  bot = new Appservice({
    port,
    bindAddress: '127.0.0.1',
    homeserverName: 'localhost',
    homeserverUrl: world.server.baseUrl,
    registration: { ...reg, url: reg.url!, namespaces: reg.namespaces as never } as never,
    storage: new MemoryStorageProvider(),
    joinStrategy: { onJoinRoom: async (id: string, join: (id: string) => Promise<string>) => join(id) } as never,
  })
  bot.on('room.invite', (roomId: string, event: Json) =>
    begin(bot.getIntentForUserId(event.state_key).joinRoom(roomId)),
  )
  bot.on('room.message', (roomId: string, event: Json) => {
    if (event.sender !== person.userId) return
    begin(bot.getIntentForSuffix('echo').sendText(roomId, `echo: ${event.content.body}`))
  })
  bot.on(
    'query.user',
    (_userId: string, create: (info: object) => Promise<void>) => void create({ display_name: 'Ghost' }),
  )
  bot.on(
    'query.room',
    (_alias: string, create: (info: object) => Promise<void>) => void create({ preset: 'public_chat' }),
  )
  await bot.begin()
})
afterAll(async () => {
  await Promise.all(begun)
  bot?.stop()
  await world?.close()
})

const room = encodeURIComponent
const call = (method: string, path: string, body?: unknown) =>
  world.api.call(method, path, { token: person.token, ...(body !== undefined && { body }) })

test('a bot on the appservice class of matrix-bot-sdk joins when invited and answers', async () => {
  const invite = ['@_bots_echo:localhost']
  const roomId = await createRoom(world.api, person.token, { preset: 'private_chat', invite })
  await waitUntil('the ghost to join', async () => {
    return (await call('GET', `/rooms/${room(roomId)}/joined_members`)).joined[invite[0]!] !== undefined
  })
  await sendText(world.api, person.token, roomId, '1', 'hello')
  await waitUntil('the echo', async () => {
    const page = await call('GET', `/rooms/${room(roomId)}/messages?dir=b&limit=5`)
    return page.chunk.some((event: Json) => event.content.body === 'echo: hello' && event.sender === invite[0])
  })
})

test('users and rooms are made when they are asked for', async () => {
  expect(await call('GET', '/profile/@_bots_asked:localhost')).toMatchObject({ displayname: 'Ghost' })
  expect((await call('GET', `/directory/room/${room('#_bots_asked:localhost')}`)).room_id).toMatch(/^!/)
})

test('it is told who is about, who has read, what is sent to its devices and what is left of their keys', async () => {
  const heard: Json[] = []
  const counts: Json[] = []
  const changed: string[] = []
  bot.on('ephemeral.event', (event: Json) => void heard.push(event))
  bot.on('otk.counts', (some: Json) => void counts.push(some))
  bot.on('device_lists', (lists: Json) => void changed.push(...lists.changed))
  const ghost = '@_bots_echo:localhost'
  const asGhost = (path: string) => `${path}?user_id=${room(ghost)}&device_id=BOT`
  const send = (method: string, path: string, body: object) =>
    world.api.call(method, path, { token: reg.as_token, body })
  await bot.getIntentForUserId(ghost).ensureRegistered()
  await send('PUT', `/devices/BOT?user_id=${room(ghost)}`, {})
  const maker = deviceMaker({ userId: ghost, deviceId: 'BOT' })
  await send('POST', asGhost('/keys/upload'), { device_keys: maker.identity(), one_time_keys: maker.keys(2) })
  const roomId = await createRoom(world.api, person.token, { preset: 'private_chat', invite: [ghost] })
  await waitUntil('the ghost to join', async () => {
    return (await call('GET', `/rooms/${room(roomId)}/joined_members`)).joined[ghost] !== undefined
  })
  const eventId = await sendText(world.api, person.token, roomId, 'read', 'read')
  await call('POST', `/rooms/${room(roomId)}/receipt/m.read/${room(eventId)}`, {})
  await call('PUT', `/presence/${person.userId}/status`, { presence: 'online', status_msg: 'here' })
  await call('POST', '/keys/claim', { one_time_keys: { [ghost]: { BOT: 'signed_curve25519' } } })
  await call('PUT', '/sendToDevice/m.secret/1', { messages: { [ghost]: { BOT: { n: 1 } } } })
  const own = deviceMaker(person)
  await call('POST', '/keys/upload', { device_keys: own.identity() })
  for (const type of ['m.receipt', 'm.presence', 'm.secret']) {
    await waitUntil(type, () => heard.some((event) => event.type === type))
  }
  expect(heard.find(({ type }) => type === 'm.secret')).toMatchObject({ to_user_id: ghost, to_device_id: 'BOT' })
  await waitUntil('the counts', () => counts.some((some) => some[ghost]?.BOT?.signed_curve25519 === 1))
  await waitUntil("the person's devices", () => changed.includes(person.userId))
})

test('a framework without a route for pings has that said to it', async () => {
  const path = '/_matrix/client/v1/appservice/bots/ping'
  const answer = await world.api.request('POST', path, { token: reg.as_token, body: { transaction_id: 'x' } })
  expect(answer).toMatchObject({ status: 502, body: { errcode: 'M_BAD_STATUS', status: 404 } })
})
