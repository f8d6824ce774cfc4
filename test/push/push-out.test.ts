import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { EventId, RoomId } from '../../src/core/ids.ts'
import { PUSH_PACE } from '../../src/domain/limits/pushers.ts'
import {
  type Account,
  type Api,
  createRoom,
  type Json,
  join,
  login,
  openApi,
  register,
  sendText,
} from '../support/api.ts'
import { createAuthority } from '../support/certificate.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import { bodiesOf, setPusher, startGateway, TAKES_ALL, type TestGateway } from './gateway.ts'

let gateway: TestGateway
let server: TestServer
let api: Api
let alice: Account
let bob: Account
let room: string
let ahead = 0
let serial = 0

beforeAll(async () => {
  const authority = createAuthority()
  const now = () => Date.now() + ahead
  gateway = await startGateway(authority, 0, now)
  server = await startServer({ outbound: { ca_file: authority.file } }, { clock: { now } })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  await api.call('PUT', `/profile/${alice.userId}/displayname`, { token: alice.token, body: { displayname: 'Alice' } })
})

afterAll(async () => {
  await api?.close()
  await server?.close()
  await gateway?.close()
  gateway?.authority.remove()
})

/** Each test has a user and a room of its own. */
beforeEach(async () => {
  gateway.behave(TAKES_ALL)
  serial += 1
  bob = await register(api, `bob${serial}`)
  room = await createRoom(api, alice.token, { preset: 'public_chat', name: 'Harbour' })
  await join(api, bob.token, room)
})

/** Waits while time flies for the server, so that none of its pauses is long. */
const soon = <T>(what: string, ask: () => T | undefined | false, stepMs = 1_000): Promise<T> =>
  waitUntil(what, () => {
    ahead += stepMs
    return ask()
  })
const taken = (pushkey: string, count: number, at = gateway): Promise<Json[]> =>
  soon(`${count} notifications for ${pushkey}`, () => {
    const found = at.of(pushkey)
    return found.length >= count && found
  })
const asked = (pushkey: string) =>
  gateway.requests.filter(({ notification }) => notification.devices[0].pushkey === pushkey)

const key = (name = 'key') => `${name} ${serial}`
const say = (text: string, by = alice, where = room) => sendText(api, by.token, where, `${text} ${serial}`, text)
const send = async (type: string, body: Json, where = room): Promise<string> => {
  const path = `/rooms/${encodeURIComponent(where)}/send/${type}/${Math.random()}`
  return (await api.call('PUT', path, { token: alice.token, body })).event_id
}
const read = (who: Account, eventId: string, kind = 'm.read', where = room) =>
  api.call('POST', `/rooms/${encodeURIComponent(where)}/receipt/${kind}/${encodeURIComponent(eventId)}`, {
    token: who.token,
    body: {},
  })
const pushersOf = async (who: Account): Promise<Json[]> =>
  (await api.call('GET', '/pushers', { token: who.token })).pushers

describe('a notification', () => {
  it('tells the gateway of the event, the room, the sender and the device', async () => {
    await setPusher(api, bob, gateway, key(), { data: { brand: 'x', 'org.deep': { a: [1, null] } } })
    const eventId = await say('ahoy')
    const [found] = await gateway.until(key(), 1)
    const { devices, ...rest } = found
    expect(rest).toEqual({
      ...{ event_id: eventId, room_id: room, type: 'm.room.message', sender: alice.userId },
      ...{ sender_display_name: 'Alice', room_name: 'Harbour', prio: 'high', counts: { unread: 1 } },
      content: { msgtype: 'm.text', body: 'ahoy' },
    })
    const [{ pushkey_ts, ...device }] = devices
    expect(devices).toHaveLength(1)
    expect(Math.abs(pushkey_ts - Date.now() / 1000)).toBeLessThan(60)
    expect(device).toEqual({
      ...{ app_id: 'org.app', pushkey: key(), tweaks: { sound: 'default' } },
      data: { brand: 'x', 'org.deep': { a: [1, null] } },
    })
  })

  it('has nothing but names and counts where the pusher wants nothing else', async () => {
    await setPusher(api, bob, gateway, key(), { data: { format: 'event_id_only' } })
    const eventId = await say('secret')
    const [found] = await gateway.until(key(), 1)
    const device = {
      app_id: 'org.app',
      pushkey: key(),
      pushkey_ts: expect.any(Number),
      data: { format: 'event_id_only' },
    }
    expect(found).toEqual({ event_id: eventId, room_id: room, prio: 'high', counts: { unread: 1 }, devices: [device] })
  })

  it('is urgent if it makes a sound, highlights or is encrypted, and low otherwise', async () => {
    const third = await register(api, `third${serial}`)
    await join(api, third.token, room)
    await setPusher(api, bob, gateway, key())
    // One after another: a notification counts what is unread when it is sent.
    await say('plain')
    await gateway.until(key(), 1)
    await send('m.room.encrypted', { algorithm: 'm.megolm.v1.aes-sha2', ciphertext: 'x' })
    await gateway.until(key(), 2)
    await send('m.room.message', { msgtype: 'm.text', body: 'you', 'm.mentions': { user_ids: [bob.userId] } })
    const found = await gateway.until(key(), 3)
    expect(found.map(({ prio, devices }) => [prio, devices[0].tweaks])).toEqual([
      ['low', {}],
      ['high', {}],
      ['high', { sound: 'default', highlight: true }],
    ])
    expect(found.map(({ counts }) => counts.unread)).toEqual([1, 2, 3])
  })

  it('tells apart who is mentioned, who is not, and who said it, among users with the default rules', async () => {
    const [third, fourth] = [await register(api, `m${serial}a`), await register(api, `m${serial}b`)]
    for (const [who, name] of [
      [bob, 'key'],
      [third, 'third'],
      [fourth, 'fourth'],
    ] as const) {
      if (who !== bob) await join(api, who.token, room)
      await setPusher(api, who, gateway, key(name))
    }
    const body = { msgtype: 'm.text', body: 'you', 'm.mentions': { user_ids: [third.userId, bob.userId] } }
    const path = `/rooms/${encodeURIComponent(room)}/send/m.room.message/mention`
    await api.call('PUT', path, { token: bob.token, body })
    await say('end')
    const tweaks = async (name: string, count: number) =>
      (await gateway.until(key(name), count)).map(({ content, devices }) => [content.body, devices[0].tweaks])
    expect(await tweaks('third', 2)).toEqual([
      ['you', { sound: 'default', highlight: true }],
      ['end', {}],
    ])
    expect(await tweaks('fourth', 2)).toEqual([
      ['you', {}],
      ['end', {}],
    ])
    expect(await tweaks('key', 1)).toEqual([['end', {}]])
  })

  it('comes for an invitation, with the invited user as its target', async () => {
    await setPusher(api, bob, gateway, key())
    const other = await createRoom(api, alice.token, { name: 'Cellar', invite: [bob.userId] })
    const [found] = await gateway.until(key(), 1)
    expect(found).toMatchObject({ room_id: other, type: 'm.room.member', user_is_target: true, room_name: 'Cellar' })
    expect(found.counts).toEqual({ unread: 1 })
    // Whoever is invited sees no more yet.
    await say('not for bob', alice, other)
    await say('for bob')
    expect(bodiesOf((await gateway.until(key(), 2)).slice(1))).toEqual(['for bob'])
  })

  it('does not come for own events, notices, joins, or what came before the join', async () => {
    const late = await register(api, `late${serial}`)
    await setPusher(api, late, gateway, key('late'))
    await setPusher(api, bob, gateway, key())
    await say('before')
    await gateway.until(key(), 1)
    await join(api, late.token, room)
    await say('own', bob)
    await gateway.until(key('late'), 1)
    await send('m.room.message', { msgtype: 'm.notice', body: 'notice' })
    await say('after')
    expect(bodiesOf(await gateway.until(key(), 2))).toEqual(['before', 'after'])
    expect(bodiesOf(await gateway.until(key('late'), 2))).toEqual(['own', 'after'])
  })

  it('follows the rules of each user', async () => {
    await setPusher(api, bob, gateway, key())
    const muted = `/pushrules/global/override/${encodeURIComponent(room)}`
    const conditions = [{ kind: 'event_match', key: 'room_id', pattern: room }]
    await api.call('PUT', muted, { token: bob.token, body: { conditions, actions: [] } })
    const keyword = { pattern: 'cake', actions: ['notify', { set_tweak: 'sound', value: 'bing' }] }
    await say('silent')
    await api.call('DELETE', muted, { token: bob.token })
    await api.call('PUT', '/pushrules/global/content/cake', { token: bob.token, body: keyword })
    await say('there is cake')
    const [found] = await gateway.until(key(), 1)
    expect(found.content.body).toBe('there is cake')
    expect(found.devices[0].tweaks).toEqual({ sound: 'bing' })
  })

  it('does not come for a disabled pusher, and comes again once it is enabled', async () => {
    await setPusher(api, bob, gateway, key(), { 'org.matrix.msc3881.enabled': false })
    await say('while disabled')
    await setPusher(api, bob, gateway, key())
    await say('while enabled')
    expect(bodiesOf(await gateway.until(key(), 1))).toEqual(['while enabled'])
  })

  it('ends with the session of the pusher', async () => {
    const second = await login(api, `bob${serial}`)
    await setPusher(api, second, gateway, key('second'))
    await setPusher(api, bob, gateway, key())
    await say('both')
    await Promise.all([gateway.until(key('second'), 1), gateway.until(key(), 1)])
    await api.call('POST', '/logout', { token: second.token, body: {} })
    await say('one')
    await gateway.until(key(), 2)
    expect(bodiesOf(gateway.of(key('second')))).toEqual(['both'])
  })
})

describe('the badge', () => {
  it('falls when the user reads, without an event', async () => {
    await setPusher(api, bob, gateway, key())
    await say('one')
    const last = await say('two')
    await gateway.until(key(), 2)
    await read(bob, last, 'm.read.private')
    const found = await gateway.until(key(), 3)
    const device = found[2].devices[0]
    expect(found[2]).toEqual({ counts: { unread: 0 }, devices: [device] })
    expect(device).toEqual({ ...found[0].devices[0], tweaks: undefined })
  })

  it('falls when the user answers from another device', async () => {
    await setPusher(api, bob, gateway, key())
    await say('one')
    await gateway.until(key(), 1)
    await say('answer', bob)
    const found = await gateway.until(key(), 2)
    expect(found[1].counts).toEqual({ unread: 0 })
  })

  it('falls when history is removed, for those alone to whom it was unread', async () => {
    const third = await register(api, `third${serial}`)
    await join(api, third.token, room)
    for (const [who, name] of [
      [bob, 'key'],
      [third, 'third'],
    ] as const)
      await setPusher(api, who, gateway, key(name))
    await say('one')
    await say('two')
    const last = await say('three')
    await gateway.until(key(), 3)
    await read(third, last)
    await waitUntil('the third', () => gateway.of(key('third')).at(-1)?.counts.unread === 0)
    const sent = gateway.of(key('third')).length
    await server.services.admin.historyPurges.begin(room as RoomId, { eventId: last as EventId }, true)
    const found = await gateway.until(key(), 4)
    expect(found[3]).toEqual({ counts: { unread: 1 }, devices: [expect.anything()] })
    await say('four')
    await gateway.until(key(), 5)
    expect(bodiesOf((await gateway.until(key('third'), sent + 1)).slice(sent))).toEqual(['four'])
  })

  it('is not sent to a pusher that counts itself', async () => {
    const data = { 'org.matrix.msc4076.disable_badge_count': true }
    await setPusher(api, bob, gateway, key('own'), { data })
    await setPusher(api, bob, gateway, key())
    const eventId = await say('one')
    await Promise.all([gateway.until(key(), 1), gateway.until(key('own'), 1)])
    await read(bob, eventId)
    await gateway.until(key(), 2)
    expect(gateway.of(key('own')).map(({ counts }) => counts)).toEqual([{}])
  })
})

/** What drips is waited for as long as ten seconds: one does from the start, while the other tests run. */
let dripping: TestGateway
beforeAll(async () => {
  dripping = await startGateway(gateway.authority)
  dripping.behave((_, response) => (dripping.requests.length === 1 ? drip(response) : { rejected: [] }))
  const dora = await register(api, 'dora')
  const where = await createRoom(api, alice.token, { preset: 'public_chat' })
  await join(api, dora.token, where)
  await setPusher(api, dora, dripping, 'drip')
  await say('a drop', alice, where)
  await waitUntil('the first request', () => dripping.requests.length > 0)
})
afterAll(() => dripping?.close())

/** Answers with a byte now and then. */
function drip(response: ServerResponse): undefined {
  response.writeHead(200, { 'content-length': 1_000 }).write('{')
  const timer = setInterval(() => response.write(' '), 200)
  response.on('close', () => clearInterval(timer))
}

describe('a gateway', () => {
  it('that rejects a key ends its pusher, and no other', async () => {
    const other = await register(api, `other${serial}`)
    await join(api, other.token, room)
    await setPusher(api, other, gateway, key('victim'))
    await setPusher(api, bob, gateway, key())
    gateway.behave(({ devices }) => ({ rejected: devices[0].pushkey === key() ? [key(), key('victim')] : [] }))
    await say('one')
    await waitUntil('the end of the pusher', async () => (await pushersOf(bob)).length === 0)
    await gateway.until(key('victim'), 1)
    expect(await pushersOf(other)).toHaveLength(1)
    await say('two')
    await gateway.until(key('victim'), 2)
    expect(gateway.of(key())).toHaveLength(1)
  })

  it('that answers {} has rejected nothing', async () => {
    await setPusher(api, bob, gateway, key())
    gateway.behave(() => ({}))
    await say('one')
    await say('two')
    await gateway.until(key(), 2)
    expect(await pushersOf(bob)).toHaveLength(1)
  })

  it('gets each notification again until it takes it, in order', async () => {
    await setPusher(api, bob, gateway, key())
    let refusals = 0
    gateway.behave(() => (refusals++ < 2 ? 502 : { rejected: [] }))
    await say('one')
    await say('two')
    await say('three')
    expect(bodiesOf(await taken(key(), 3))).toEqual(['one', 'two', 'three'])
    expect(refusals).toBe(5)
  })

  it.each([
    [
      'sends us on to loopback',
      (_: Json, response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
    ],
    ['answers 1 GB', (_: Json, response) => void response.writeHead(200, { 'content-length': 2 ** 30 }).write('[')],
    ['breaks off', (_: Json, response) => void response.destroy()],
  ] satisfies [string, Parameters<TestGateway['behave']>[0]][])('that %s has not taken it', async (_, behaviour) => {
    await setPusher(api, bob, gateway, key())
    gateway.behave(behaviour)
    await say('one')
    await soon('another request', () => asked(key()).length > 1)
    gateway.behave(TAKES_ALL)
    expect(bodiesOf(await taken(key(), 1))).toEqual(['one'])
  })

  it('that drips has not taken it', async () => {
    expect(bodiesOf(await taken('drip', 1, dripping))).toEqual(['a drop'])
    expect(dripping.requests).toHaveLength(2)
  })

  it('at a private address is not called', async () => {
    const locked = await startServer({ outbound: { ca_file: gateway.authority.file, allow_ranges: [] } })
    const there = openApi(locked.baseUrl)
    try {
      const [ann, ben] = [await register(there, 'ann'), await register(there, 'ben')]
      const where = await createRoom(there, ann.token, { preset: 'public_chat' })
      await join(there, ben.token, where)
      await setPusher(there, ben, gateway, key('locked'))
      await sendText(there, ann.token, where, 'x', 'x')
      const count = async () => (await locked.database.db.query('SELECT 1 FROM push_gateway')).length
      await waitUntil('a failure that is noted', async () => (await count()) === 1)
      expect(asked(key('locked'))).toEqual([])
    } finally {
      await there.close()
      await locked.close()
    }
  })
})

describe('while a gateway is down', () => {
  it('nothing that is still unread is lost, and what was read or redacted is not sent', async () => {
    const other = await createRoom(api, alice.token, { preset: 'public_chat' })
    await join(api, bob.token, other)
    await setPusher(api, bob, gateway, key())
    gateway.behave((_, response) => void response.destroy())
    const texts = Array.from({ length: 100 }, (_, index) => `text ${index}`)
    const ids: string[] = []
    for (const text of texts) ids.push(await say(text))
    const elsewhere = await say('read meanwhile', alice, other)
    await read(bob, elsewhere, 'm.read', other)
    await read(bob, ids[9]!)
    await api.call('PUT', `/rooms/${encodeURIComponent(room)}/redact/${encodeURIComponent(ids[20]!)}/x`, {
      token: alice.token,
      body: {},
    })
    const before = gateway.requests.length
    ahead += 3_600_000
    await waitUntil('an attempt', () => gateway.requests.length > before)
    gateway.behave(TAKES_ALL)
    ahead += 3_600_000
    const found = () => gateway.of(key()).filter(({ content }) => content !== undefined)
    const wanted = texts.filter((_, index) => index > 9 && index !== 20)
    // One burst after another: time goes on with what was sent, and not with how long that takes. What was read elsewhere was before these.
    let bursts = 1
    await waitUntil('the last one', () => {
      if (found().length >= bursts * PUSH_PACE.burst) {
        ahead += PUSH_PACE.burst * PUSH_PACE.everyMs
        bursts += 1
      }
      return found().length >= wanted.length
    })
    expect(bodiesOf(found())).toEqual(wanted)
    expect(found().at(-1).counts).toEqual({ unread: 89 })
  })

  it('one request at a time is made, however many wait', async () => {
    const people = await Promise.all(Array.from({ length: 8 }, (_, index) => register(api, `p${serial}_${index}`)))
    for (const [index, one] of people.entries()) {
      await join(api, one.token, room)
      await setPusher(api, one, gateway, key(`p${index}`))
    }
    const isOurs = ({ notification }: { notification: Json }) => notification.devices[0].pushkey.endsWith(` ${serial}`)
    gateway.behave((_, response) => void response.destroy())
    await say('one')
    // The gateway has answered before, so that all are tried at first; then one after a second, and one after two.
    const ours = () => gateway.requests.filter(isOurs).map(({ at }) => at)
    await waitUntil('all attempts', () => ours().length >= people.length)
    const step = 100
    const times = await soon('two more', () => ours().length >= people.length + 2 && ours(), step)
    const [second = 0, third = 0] = times.slice(people.length)
    expect(second - times[people.length - 1]!).toBeGreaterThan(500)
    expect(third - second).toBeGreaterThan(1_000)
    gateway.behave(TAKES_ALL)
    for (const [index] of people.entries()) expect(bodiesOf(await taken(key(`p${index}`), 1))).toEqual(['one'])
  })

  it('a notification is given up after a day', async () => {
    await setPusher(api, bob, gateway, key())
    gateway.behave(() => 502)
    await say('stale')
    await waitUntil('an attempt', () => asked(key()).length > 0)
    ahead += 25 * 3_600_000
    await say('fresh')
    gateway.behave(TAKES_ALL)
    ahead += 3_600_000
    expect(bodiesOf(await gateway.until(key(), 1))).toEqual(['fresh'])
  })
})

it('a restart goes on where the server stopped', async () => {
  await setPusher(api, bob, gateway, key())
  gateway.behave(() => 502)
  await say('before')
  await waitUntil('an attempt', () => asked(key()).length > 0)
  await server.restart()
  gateway.behave(TAKES_ALL)
  await say('after')
  expect(bodiesOf(await gateway.until(key(), 2))).toEqual(['before', 'after'])
})
