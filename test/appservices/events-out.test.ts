import { rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import {
  type Account,
  createRoom,
  type Json,
  join as joinRoom,
  mapConcurrently,
  register,
  sendText,
} from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'
import { type Behaviour, startService, TAKES_ALL, type TestService } from './service.ts'
import { as, makeGhost, openWorld, registration, type World } from './world.ts'

let service: TestService
let world: World
let person: Account
const irc = registration('irc')
beforeAll(async () => {
  service = await startService()
  world = await openWorld([{ ...irc, url: `${service.url}/irc` }])
  person = await register(world.api, 'person')
})
afterAll(async () => {
  await world.close()
  await service.close()
})
beforeEach(() => service.behave(TAKES_ALL))

const send = (roomId: string, text: string, token = person.token) => sendText(world.api, token, roomId, text, text)
const texts = (roomId: string) =>
  service
    .events()
    .filter((e) => e.room_id === roomId && e.content.body)
    .map((e) => e.content.body)
const room = encodeURIComponent

/** A room of the person, with a ghost in it. */
async function bridged(name: string): Promise<{ roomId: string; ghost: string }> {
  const ghost = await makeGhost(world.api, irc, `_irc_${name}`)
  const roomId = await createRoom(world.api, person.token, { preset: 'public_chat' })
  await world.api.call('POST', as(ghost, `/join/${room(roomId)}`), { token: irc.as_token, body: {} })
  await service.until(`${ghost} in the room`, (event) => event.room_id === roomId && event.state_key === ghost)
  return { roomId, ghost }
}
const until = (text: string) => service.until(text, (event) => event.content.body === text)

describe('PUT A/transactions/{txnId}', () => {
  it('carries events in the client format, in order, with the hs_token in header and query', async () => {
    const { roomId } = await bridged('format')
    const eventId = await send(roomId, 'first')
    await send(roomId, 'second')
    await until('second')
    expect(texts(roomId)).toEqual(['first', 'second'])
    const event = service.events().find(({ event_id }) => event_id === eventId)
    expect(event).toEqual({
      type: 'm.room.message',
      room_id: roomId,
      sender: person.userId,
      event_id: eventId,
      origin_server_ts: expect.any(Number),
      content: { msgtype: 'm.text', body: 'first' },
      unsigned: { age: expect.any(Number) },
    })
    const last = service.transactions().at(-1)!
    expect(last.path).toMatch(/^\/irc\/_matrix\/app\/v1\/transactions\/\d+$/)
    expect([last.authorization, last.query.get('access_token')]).toEqual([`Bearer ${irc.hs_token}`, irc.hs_token])
    // State events are identified by state_key, not type.
    const member = service.events().find((e) => e.room_id === roomId && e.type === 'm.room.member')
    expect(member.state_key).toBe('@_irc_format:localhost')
  })

  it('concerns rooms by their members, and no others', async () => {
    const { roomId, ghost } = await bridged('members')
    const other = await createRoom(world.api, person.token, { preset: 'public_chat' })
    await send(other, 'not for it')
    await send(roomId, 'while in')
    await world.api.call('POST', `/rooms/${room(roomId)}/kick`, { token: person.token, body: { user_id: ghost } })
    await send(roomId, 'after it left')
    await world.api.call('POST', `/rooms/${room(other)}/invite`, { token: person.token, body: { user_id: ghost } })
    await service.until('the invitation', (e) => e.room_id === other && e.content.membership === 'invite')
    expect(texts(roomId)).toEqual(['while in'])
    expect(service.events().some((e) => e.state_key === ghost && e.content.membership === 'leave')).toBe(true)
    expect(texts(other)).toEqual([])
  })

  it('B18: an invitation of its user carries invite_room_state in unsigned, as other invitations and joins do not', async () => {
    const ghost = await makeGhost(world.api, irc, '_irc_invited')
    const body = { preset: 'private_chat', name: 'Kitchen', invite: [ghost] }
    const roomId = await createRoom(world.api, person.token, body)
    const guest = await register(world.api, 'guest')
    await service.until('the invitation', (e) => e.room_id === roomId && e.state_key === ghost)
    await world.api.call('POST', as(ghost, `/join/${room(roomId)}`), { token: irc.as_token, body: {} })
    const invite = { token: person.token, body: { user_id: guest.userId } }
    await world.api.call('POST', `/rooms/${room(roomId)}/invite`, invite)
    await service.until('the other invitation', (e) => e.room_id === roomId && e.state_key === guest.userId)
    const members = service.events().filter((e) => e.room_id === roomId && e.type === 'm.room.member')
    const stateOf = (userId: string, membership: string) =>
      members.find((e) => e.state_key === userId && e.content.membership === membership).unsigned.invite_room_state
    const shown = stateOf(ghost, 'invite')
    const own = { sender: person.userId, state_key: '' }
    expect(shown).toContainEqual({ ...own, type: 'm.room.name', content: { name: 'Kitchen' } })
    expect(shown).toContainEqual({ ...own, type: 'm.room.join_rules', content: { join_rule: 'invite' } })
    expect(shown.map((e: Json) => e.type)).toEqual(expect.arrayContaining(['m.room.create', 'm.room.member']))
    for (const e of shown) expect(Object.keys(e).sort()).toEqual(['content', 'sender', 'state_key', 'type'])
    expect(stateOf(ghost, 'join')).toBeUndefined()
    expect(stateOf(guest.userId, 'invite')).toBeUndefined()
  })

  it('concerns rooms by their aliases, from when they have one until they lose it', async () => {
    const roomId = await createRoom(world.api, person.token, { preset: 'public_chat' })
    const alias = '#_irc_later:localhost'
    await joinRoom(world.api, irc.as_token, roomId)
    await send(roomId, 'bot in')
    await world.api.call('PUT', `/directory/room/${room(alias)}`, { token: irc.as_token, body: { room_id: roomId } })
    await world.api.call('POST', `/rooms/${room(roomId)}/leave`, { token: irc.as_token, body: {} })
    await send(roomId, 'by alias')
    await until('by alias')
    await world.api.call('DELETE', `/directory/room/${room(alias)}`, { token: irc.as_token })
    await send(roomId, 'no more')
    const { roomId: next } = await bridged('alias')
    await send(next, 'after alias')
    await until('after alias')
    expect(texts(roomId)).toEqual(['bot in', 'by alias'])
  })

  it('concerns rooms by their ids, also from a registration that comes later', async () => {
    const roomId = await createRoom(world.api, person.token, {})
    const late = await startService()
    const namespaces = { rooms: [{ regex: roomId.replaceAll('.', '\\.'), exclusive: false }] }
    const logging = registration('logging', { url: late.url, namespaces })
    await world.register(logging)
    await waitUntil('it to be registered', async () => {
      return (await world.api.request('GET', '/account/whoami', { token: logging.as_token })).status === 200
    })
    await send(roomId, 'logged')
    await late.until('logged', (event) => event.content.body === 'logged')
    expect(late.events().map((event) => event.content.body)).toEqual(['logged'])
    await late.close()
  })
})

/** A behaviour that answers by itself. */
const by =
  (act: (raw: Parameters<Behaviour>[1]) => unknown): Behaviour =>
  (_, raw) => {
    act(raw)
    return undefined
  }

describe('a service that does not answer well', () => {
  test.each([
    ['500', () => 500],
    ['a redirect', by(({ response }) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end())],
    ['a closed connection', by(({ response }) => response.destroy())],
    [
      'an answer that breaks off',
      by(({ response }) => response.writeHead(500).write('half', () => response.destroy())),
    ],
  ] as readonly [string, Behaviour][])(
    '%s: gets the same transaction again, and loses nothing',
    async (name, behaviour) => {
      const { roomId } = await bridged(`bad${name.replaceAll(' ', '')}`)
      await settled()
      const before = service.transactions().length
      let refusals = 0
      service.behave((heard, raw) => (refusals++ < 1 ? behaviour(heard, raw) : [200, {}]))
      await send(roomId, `1 ${name}`)
      await send(roomId, `2 ${name}`)
      await until(`2 ${name}`)
      const [first, second] = service.transactions().slice(before)
      expect([second!.path, second!.text]).toEqual([first!.path, first!.text])
      expect(texts(roomId)).toEqual([`1 ${name}`, `2 ${name}`])
    },
  )

  it('answers 200 with 100 MB, or goes on for ever: taken, and nobody waits for the rest', async () => {
    const { roomId } = await bridged('long')
    await settled()
    const taken: Json[] = []
    service.behave(({ body }, { response }) => {
      taken.push(...body.events)
      response.writeHead(200, { 'content-type': 'application/json' })
      const more = () => {
        if (!response.destroyed) response.write(Buffer.alloc(65_536, 32), () => setImmediate(more))
      }
      more()
      return undefined
    })
    await send(roomId, 'to the long one')
    await waitUntil('it to be told', () => taken.some((event) => event.content.body === 'to the long one'))
    await settled()
    service.behave(TAKES_ALL)
    await send(roomId, 'and on')
    await until('and on')
    expect(texts(roomId)).toEqual(['and on'])
  })
})

/** Waits until nothing is on its way. */
async function settled(): Promise<void> {
  await waitUntil('all to be delivered', async () => {
    const [row] = await world.server.database.db.query<{ open: number }>(
      'SELECT count(*) AS open FROM appservice_queue WHERE body IS NOT NULL',
    )
    return row?.open === 0
  })
}

async function failures(): Promise<number> {
  return Number(/^hearth_appservice_failures\{appservice="irc"\} (\d+)$/m.exec(await world.server.metrics())?.[1])
}

describe('a service that is away', () => {
  it('hangs while much comes, breaks off, and catches up while more comes: all once and in order', async () => {
    const { roomId } = await bridged('much')
    await settled()
    const held: ServerResponse[] = []
    service.behave(by(({ response }) => held.push(response)))
    const say = (lines: number, word: string) =>
      mapConcurrently([...Array(lines).keys()], 8, (n) => send(roomId, `${word} ${n}`))
    await say(620, 'while it hangs')
    service.behave(() => 503)
    for (const response of held) response.destroy()
    await say(20, 'while it is gone')
    service.behave(TAKES_ALL)
    // Whoever calls is up.
    await world.api.call('GET', '/account/whoami', { token: irc.as_token })
    await say(100, 'while it catches up')
    await waitUntil('all of it', () => texts(roomId).length >= 740)
    const { chunk } = await world.api.call('GET', `/rooms/${room(roomId)}/messages?dir=b&limit=740`, {
      token: person.token,
    })
    const said = chunk.map((event: Json) => event.content.body).reverse()
    expect(texts(roomId)).toEqual(said)
  })

  it('finds the rest after a restart of this server, the transaction under way first and unchanged', async () => {
    const { roomId, ghost } = await bridged('restart')
    await settled()
    service.behave(() => 503)
    const before = service.transactions().length
    await send(roomId, 'before')
    await waitUntil('a first try', () => service.transactions().length > before)
    await waitUntil('operators to see it', async () => (await failures()) > 0)
    await send(roomId, 'meanwhile')
    await world.api.call('POST', `/rooms/${room(roomId)}/kick`, { token: person.token, body: { user_id: ghost } })
    await send(roomId, 'after it left')
    const restartedAt = Date.now()
    await world.server.restart()
    service.behave(TAKES_ALL)
    await world.api.call('GET', '/account/whoami', { token: irc.as_token })
    await service.until(
      'its last event',
      (e) => e.state_key === ghost && e.room_id === roomId && e.content.membership === 'leave',
    )
    const tries = service.transactions().slice(before)
    // Where the database is older than what was sent, as after a restore, no later id was given out before.
    const idOf = ({ path }: { readonly path: string }) => Number(path.slice(path.lastIndexOf('/') + 1))
    expect(idOf(tries.at(-1)!)).toBeGreaterThanOrEqual(restartedAt)
    const again = tries.filter(({ path }) => path === tries[0]!.path)
    expect(again.length).toBeGreaterThan(1)
    expect(new Set(again.map(({ text }) => text)).size).toBe(1)
    await settled()
    expect(texts(roomId)).toEqual(['before', 'meanwhile'])
    expect(await failures()).toBe(0)
  })
})

it('taken out of the configuration while a transaction is under way, and put back: goes on from there', async () => {
  const { roomId } = await bridged('back')
  await send(roomId, 'before')
  await until('before')
  await settled()
  await world.server.restart()
  await send(roomId, 'after the restart')
  await until('after the restart')
  await settled()
  const held: ServerResponse[] = []
  service.behave(by(({ response }) => held.push(response)))
  await send(roomId, 'under way')
  await waitUntil('it to be sent', () => held.length > 0)
  const isKnown = async () =>
    (await world.api.request('GET', '/account/whoami', { token: irc.as_token })).status === 200
  await rm(join(world.directory, 'irc.yaml'))
  await waitUntil('it to be gone', async () => !(await isKnown()))
  await world.register({ ...irc, url: `${service.url}/irc` })
  await waitUntil('it to be back', isKnown)
  const start = service.transactions().length
  service.behave(TAKES_ALL)
  for (const response of held) response.writeHead(200).end('{}')
  await send(roomId, 'later')
  await until('later')
  const since = service.transactions().slice(start)
  expect(since.flatMap(({ body }) => body.events).map((event: Json) => event.content.body)).toEqual(['later'])
})

describe('a service that asks for what passes', () => {
  it('is told who types and who has read, with the room; others are not', async () => {
    const eph = await startService()
    const wish = { url: eph.url, receive_ephemeral: true }
    const curious = registration('eph', wish)
    await world.register(curious)
    await waitUntil('it to be registered', async () => {
      return (await world.api.request('GET', '/account/whoami', { token: curious.as_token })).status === 200
    })
    const { roomId } = await bridged('passes')
    await joinRoom(world.api, curious.as_token, roomId)
    const eventId = await send(roomId, 'to be read')
    const { token, userId } = person
    await world.api.call('PUT', `/rooms/${room(roomId)}/typing/${userId}`, {
      token,
      body: { typing: true, timeout: 9_000 },
    })
    await world.api.call('POST', `/rooms/${room(roomId)}/receipt/m.read/${room(eventId)}`, { token, body: {} })
    const received = () => eph.transactions().flatMap(({ body }) => body.ephemeral ?? [])
    await waitUntil('both', () => new Set(received().map((event: Json) => event.type)).size === 2)
    expect(received()).toContainEqual({ type: 'm.typing', room_id: roomId, content: { user_ids: [userId] } })
    const receipt = { [eventId]: { 'm.read': { [userId]: { ts: expect.any(Number) } } } }
    expect(received()).toContainEqual({ type: 'm.receipt', room_id: roomId, content: receipt })
    expect(service.transactions().some(({ body }) => 'ephemeral' in body)).toBe(false)
    await eph.close()
  })
})
