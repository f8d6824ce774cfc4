import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { AppServiceRegistration, Bridge, Logger, type WeakEvent } from 'matrix-appservice-bridge'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorld, registration, type TestRegistration, type World } from '../appservices/world.ts'
import { type Account, createRoom, type Json, mapConcurrently, register, sendText } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

const PROTOCOL = {
  user_fields: ['nick'],
  location_fields: ['channel'],
  icon: 'mxc://localhost/net',
  field_types: { nick: { regexp: '.+', placeholder: 'nick' } },
  instances: [{ desc: 'Net', icon: 'mxc://localhost/net', fields: {}, network_id: 'net' }],
}

let world: World
let person: Account
let net: TestRegistration
let bridge: Bridge
let port: number
const heard: WeakEvent[] = []

/** A bridge as its authors write it: it answers what is said in rooms of its users, and makes users and rooms when it is asked. */
async function startBridge(): Promise<Bridge> {
  const made = new Bridge({
    homeserverUrl: world.server.baseUrl,
    domain: 'localhost',
    registration: AppServiceRegistration.fromObject(net as never)!,
    disableStores: true,
    controller: {
      onUserQuery: () => ({ name: 'lazily made' }),
      onAliasQuery: (_alias, localpart) => ({ creationOpts: { room_alias_name: localpart, preset: 'public_chat' } }),
      onEvent(request) {
        const event = request.getData()
        heard.push(event)
        const { type, content, sender, room_id, state_key } = event
        if (type === 'm.room.member' && content.membership === 'invite' && state_key?.startsWith('@_net_')) {
          void made.getIntent(state_key).join(room_id)
        }
        if (type === 'm.room.message' && sender === person.userId && content.body === 'speak') {
          void made.getIntent('@_net_speaker:localhost').sendText(room_id, 'spoken')
        }
      },
      thirdPartyLookup: {
        protocols: ['net'],
        getProtocol: () => PROTOCOL,
        getUser: (_, fields) => [{ userid: `@_net_${fields.nick}:localhost`, protocol: 'net', fields }] as never,
        getLocation: () => [],
        parseUser: (userid) => [{ userid, protocol: 'net', fields: { nick: 'jim' } }] as never,
        parseLocation: (alias) => [{ alias, protocol: 'net', fields: { channel: 'c' } }] as never,
      },
    },
  })
  await made.run(port, undefined, '127.0.0.1')
  return made
}

beforeAll(async () => {
  Logger.configure({ console: 'off' } as never)
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => probe.once('listening', resolve))
  port = (probe.address() as AddressInfo).port
  await new Promise((resolve) => probe.close(resolve))
  net = registration('net', { url: `http://127.0.0.1:${port}`, protocols: ['net'] })
  world = await openWorld([net])
  person = await register(world.api, 'person')
  bridge = await startBridge()
})
afterAll(async () => {
  await bridge?.close()
  await world?.close()
})

const call = (method: string, path: string, body?: unknown) =>
  world.api.call(method, path, { token: person.token, ...(body !== undefined && { body }) })
const room = encodeURIComponent

async function joined(roomId: string): Promise<string[]> {
  return Object.keys((await call('GET', `/rooms/${room(roomId)}/joined_members`)).joined)
}

test('ghosts are made when somebody invites them, join, speak and leave', async () => {
  const roomId = await createRoom(world.api, person.token, { preset: 'public_chat' })
  await call('POST', `/rooms/${room(roomId)}/invite`, { user_id: '@_net_speaker:localhost' })
  await waitUntil('the ghost to join', async () => (await joined(roomId)).includes('@_net_speaker:localhost'))
  expect(await call('GET', '/profile/@_net_speaker:localhost')).toMatchObject({ displayname: 'lazily made' })
  await sendText(world.api, person.token, roomId, 'a', 'speak')
  const answer = await waitUntil('an answer', async () => {
    const page = await call('GET', `/rooms/${room(roomId)}/messages?dir=b&limit=10`)
    return page.chunk.find((event: Json) => event.content.body === 'spoken')
  })
  expect(answer.sender).toBe('@_net_speaker:localhost')
  await bridge.getIntent('@_net_speaker:localhost').leave(roomId)
  expect(await joined(roomId)).toEqual([person.userId])
})

test('rooms are made when somebody asks for their alias', async () => {
  const alias = '#_net_channel:localhost'
  const { room_id } = await call('POST', `/join/${room(alias)}`, {})
  await sendText(world.api, person.token, room_id, 'a', 'in the channel')
  await waitUntil('the bridge to hear it', () => heard.some(({ content }) => content.body === 'in the channel'))
})

test('third-party lookups reach it', async () => {
  expect((await call('GET', '/thirdparty/protocols')).net.user_fields).toEqual(['nick'])
  expect(await call('GET', '/thirdparty/user/net?nick=jim')).toMatchObject([{ userid: '@_net_jim:localhost' }])
  expect(await call('GET', `/thirdparty/location?alias=${room('#_net_c:localhost')}`)).toMatchObject([
    { protocol: 'net' },
  ])
})

test('a bridge without a route for pings is told so, and nothing hangs', async () => {
  const path = '/_matrix/client/v1/appservice/net/ping'
  const answer = await world.api.request('POST', path, { token: net.as_token, body: {} })
  expect(answer).toMatchObject({ status: 502, body: { errcode: 'M_BAD_STATUS' } })
})

test('a restart of the bridge in the middle of 500 messages: none lost, none twice, in order', async () => {
  const ROOMS = 5
  const COUNT = 500
  const rooms = await Promise.all(
    Array.from({ length: ROOMS }, () => createRoom(world.api, person.token, { preset: 'public_chat' })),
  )
  for (const roomId of rooms) await bridge.getIntent('@_net_listener:localhost').join(roomId)
  const texts = Array.from({ length: COUNT }, (_, n) => `message ${n}`)
  const sending = mapConcurrently(rooms, ROOMS, async (roomId, which) => {
    for (const [n, text] of texts.entries()) {
      if (n % ROOMS === which) await sendText(world.api, person.token, roomId, `m${n}`, text)
    }
  })
  const heardOf = (roomId: string) =>
    heard
      .filter((event) => event.room_id === roomId && event.type === 'm.room.message')
      .map(({ content }) => content.body)
  await waitUntil('a part of them', () => rooms.flatMap(heardOf).length > COUNT / 4)
  await bridge.close()
  const before = rooms.flatMap(heardOf).length
  await sending
  expect(before).toBeLessThan(COUNT)
  bridge = await startBridge()
  await waitUntil('the rest', () => rooms.flatMap(heardOf).length >= COUNT)
  for (const [which, roomId] of rooms.entries()) {
    expect(heardOf(roomId)).toEqual(texts.filter((_, n) => n % ROOMS === which))
  }
})
