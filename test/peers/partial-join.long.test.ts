import { afterAll, afterEach, beforeAll, beforeEach, expect, it, test } from 'vitest'
import { inspectRoom } from '../../src/cli/rooms/room-inspect.ts'
import type { RoomId } from '../../src/core/ids.ts'
import { auditRoom } from '../../src/domain/room-audit/room-audit.ts'
import { openDatabase } from '../../src/store/db/db.ts'
import { getOwnEvents } from '../../src/store/federation/federation-catch-up.ts'
import { findPartialState, noteFailure } from '../../src/store/rooms/partial-state-rooms.ts'
import { findRoomNid } from '../../src/store/rooms/rooms.ts'
import { type Account, type Json, sendText, syncPath } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { askingAs, openStranger } from '../support/stranger.ts'
import { proxyTo, type TlsHandler } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

/** More than are told anyway. */
const MEMBERS = 21
const LAZY = { room: { timeline: { limit: 50 }, state: { lazy_load_members: true } } }

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let gamma: Neighbour
let alice: Account
let members: Account[]
let bob: Account
let dora: Account
let carol: Account
let room: string
let sent = 0

const enc = encodeURIComponent

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta, gamma] = await Promise.all([street.open(), street.open(), street.open()])
  const names = Array.from({ length: MEMBERS }, (_, n) => `member${n}`)
  ;[alice, bob, dora, carol, members] = await Promise.all([
    alpha.person('alice'),
    beta.person('bob'),
    beta.person('dora'),
    gamma.person('carol'),
    Promise.all(names.map((name) => alpha.person(name))),
  ])
})

afterAll(() => street.close())

/** A room of alpha's, with many members and one of gamma's. */
beforeEach(async () => {
  const body = { preset: 'public_chat', name: 'Many' }
  room = (await alpha.api.call('POST', '/createRoom', { token: alice.token, body })).room_id
  for (const member of members) await join(alpha, member)
  await join(gamma, carol)
  await membersAt(gamma, carol)
})

afterEach(() => {
  for (const { front, server } of [alpha, beta, gamma]) front.handler = proxyTo(server.baseUrl)
})

const join = (at: Neighbour, { token }: Account, via = alpha.name) =>
  at.api.call('POST', `/join/${enc(room)}?server_name=${enc(via)}`, { token, body: {} })
const say = (at: Neighbour, { token }: Account, text: string): Promise<string> =>
  sendText(at.api, token, room, `t${sent++}`, text)
const act = (at: Neighbour, { token }: Account, what: string, body: object = {}) =>
  at.api.call('POST', `/rooms/${enc(room)}/${what}`, { token, body })
const sync = (at: Neighbour, { token }: Account, filter: object = {}, since?: string): Promise<Json> =>
  at.api.call('GET', syncPath({ filter, ...(since === undefined ? {} : { since }) }), { token })

/** Answers some requests of other servers otherwise from now on. */
function instead({ front, server }: Neighbour, isMeant: (url: string) => boolean, handler: TlsHandler): void {
  const honest = proxyTo(server.baseUrl)
  front.handler = (request, response) => (isMeant(request.url) ? handler : honest)(request, response)
}

const isState = (url: string) => url.includes('/federation/v1/state/')

/** Lets nobody have the state of a room from a server until it is released. */
function holdBack(at: Neighbour): { readonly asked: () => number; release(): void } {
  const waiting: (() => void)[] = []
  const honest = proxyTo(at.server.baseUrl)
  instead(at, isState, (request, response) => void waiting.push(() => honest(request, response)))
  return {
    asked: () => waiting.length,
    release() {
      at.front.handler = honest
      for (const answer of waiting.splice(0)) answer()
    },
  }
}

async function membersAt(at: Neighbour, { token }: Account): Promise<Record<string, string>> {
  const { chunk } = await at.api.call('GET', `/rooms/${enc(room)}/members`, { token })
  return Object.fromEntries(chunk.map(({ state_key, content }: Json) => [state_key, content.membership]))
}

async function timelineAt(at: Neighbour, who: Account): Promise<Json[]> {
  const { rooms } = await sync(at, who, LAZY)
  return rooms.join[room].timeline.events
}

const isJoinOf =
  ({ userId }: Account) =>
  ({ state_key, content }: Json) =>
    state_key === userId && content.membership === 'join'
const textsIn = (events: Json[]): string[] => events.flatMap(({ content }) => content.body ?? [])

async function withDatabase<T>(
  { server }: Neighbour,
  work: (db: ReturnType<typeof openDatabase>, roomNid: number) => Promise<T>,
) {
  const db = openDatabase({ connection: server.database.connection, poolSize: 1 })
  try {
    return await work(db, (await findRoomNid(db, room as RoomId))!)
  } finally {
    await db.close()
  }
}

/** How many events wait for the members of the room. */
const heldAt = (at: Neighbour): Promise<number> =>
  withDatabase(at, async (db, roomNid) => {
    const rows = await db.query('SELECT 1 FROM held_event WHERE room_nid = $1', [roomNid])
    return rows.length
  })

async function numberOf(db: ReturnType<typeof openDatabase>, eventId: string): Promise<number> {
  const [row] = await db.query<{ event_nid: number }>('SELECT event_nid FROM event WHERE event_id = $1', [eventId])
  return row!.event_nid
}

/** Both have the same members, and what beta has stored is right. */
async function expectWhole(): Promise<void> {
  const there = await membersAt(alpha, alice)
  await waitUntil('the same members', async () => {
    const here = await membersAt(beta, bob)
    return JSON.stringify(sorted(here)) === JSON.stringify(sorted(there)) ? true : undefined
  })
  await expectSound()
}

async function expectSound(): Promise<void> {
  const findings: string[] = []
  await withDatabase(beta, (db, roomNid) =>
    auditRoom({
      ...{ db, roomNid, knownKeys: () => [], progress: () => undefined },
      found: ({ eventId, what }) => findings.push(`${eventId ?? 'room'}: ${what}`),
    }),
  )
  expect(findings).toEqual([])
}

const sorted = (record: Record<string, string>) => Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1))

/** The next news of the room for a client that waits: how others are may come before. */
async function newsOfRoom(at: Neighbour, { token }: Account, from: string, filter: object = LAZY): Promise<Json> {
  for (let since = from; ; ) {
    const answer = await at.api.call('GET', syncPath({ since, filter, timeout: 20_000 }), { token })
    if (answer.rooms?.join?.[room]) return answer
    since = answer.next_batch
  }
}

it('is read and written to at once, and whole later', async () => {
  const held = holdBack(alpha)
  const before = await sync(beta, bob)
  await join(beta, bob)
  const lazy = await sync(beta, bob, LAZY)
  expect(lazy.rooms.join[room].timeline.events).toMatchObject([{ type: 'm.room.member', state_key: bob.userId }])
  expect(lazy.rooms.join[room].state.events.map(({ type }: Json) => type)).toContain('m.room.name')
  expect((await sync(beta, bob, {}, before.next_batch)).rooms?.join?.[room]).toBeUndefined()
  await say(beta, bob, 'hello')
  for (const [at, who] of [
    [alpha, alice],
    [gamma, carol],
  ] as const)
    await waitUntil('hello', async () => (textsIn(await timelineAt(at, who)).includes('hello') ? true : undefined))
  expect(held.asked()).toBe(1)
  const asking = membersAt(beta, bob)
  const { next_batch: since } = await sync(beta, bob, LAZY, lazy.next_batch)
  const waiting = newsOfRoom(beta, bob, since)
  held.release()
  expect(Object.keys(await asking)).toHaveLength(MEMBERS + 3)
  expect((await waiting).rooms.join[room].summary['m.joined_member_count']).toBe(MEMBERS + 3)
  const whole = (await sync(beta, bob, {}, before.next_batch)).rooms.join[room]
  const shown = whole.state.events.filter(({ type }: Json) => type === 'm.room.member')
  expect(shown).toHaveLength(MEMBERS + 2)
  expect(textsIn(whole.timeline.events)).toEqual(['hello'])
  await expectWhole()
})

it('is told of as it becomes whole, whatever else is new at that moment', async () => {
  const held = holdBack(alpha)
  const { next_batch: since } = await sync(beta, bob)
  await join(beta, bob)
  const meanwhile = await withDatabase(beta, (db, roomNid) =>
    db.tx(async (tx) => {
      await tx.query('SELECT FROM room_filling WHERE room_nid = $1 FOR UPDATE', [roomNid])
      held.release()
      await waitUntil('the members to be written', async () => {
        const [row] = await tx.query<{ any: boolean }>('SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted) AS any')
        return row!.any
      })
      const path = `/user/${enc(bob.userId)}/account_data/org.example.meanwhile`
      await beta.api.call('PUT', path, { token: bob.token, body: {} })
      return sync(beta, bob, {}, since)
    }),
  )
  expect(meanwhile.account_data.events).toMatchObject([{ type: 'org.example.meanwhile' }])
  expect(meanwhile.rooms?.join?.[room]).toBeUndefined()
  const news = await newsOfRoom(beta, bob, meanwhile.next_batch, {})
  const members = news.rooms.join[room].state.events.filter(({ type }: Json) => type === 'm.room.member')
  expect(members).toHaveLength(MEMBERS + 2)
  await expectWhole()
})

it('judges what comes meanwhile once it knows by what, each event once', async () => {
  const held = holdBack(alpha)
  await join(beta, bob)
  const [one, two, three] = members as [Account, Account, Account]
  await say(alpha, one, 'by one who was left out')
  await act(alpha, alice, 'kick', { user_id: two.userId })
  await act(alpha, alice, 'ban', { user_id: three.userId })
  await say(gamma, carol, 'from a third server')
  await act(alpha, alice, 'invite', { user_id: two.userId })
  const last = await say(alpha, alice, 'the last')
  await waitUntil('all to wait', async () => ((await heldAt(beta)) >= 6 ? true : undefined))
  const own = await say(beta, bob, 'in between')
  const joining = join(beta, dora)
  held.release()
  await joining
  const ids = async (at: Neighbour, who: Account) => (await timelineAt(at, who)).map(({ event_id }) => event_id)
  await waitUntil('the last', async () => ((await ids(beta, bob)).includes(last) ? true : undefined))
  const ours = await waitUntil('dora', async () => (await timelineAt(beta, bob)).find(isJoinOf(dora))?.event_id)
  await waitUntil('our own', async () => {
    const all = await ids(alpha, alice)
    return all.includes(own) && all.includes(ours) ? true : undefined
  })
  const [here, there] = [await ids(beta, bob), await ids(alpha, alice)]
  expect(new Set(here).size).toBe(here.length)
  const since = there.indexOf(here[0])
  expect(there.slice(since).toSorted()).toEqual(here.toSorted())
  expect((await membersAt(alpha, alice))[dora.userId]).toBe('join')
  expect(await membersAt(beta, bob)).toMatchObject({ [two.userId]: 'invite', [three.userId]: 'ban' })
  await expectWhole()
  await waitUntil('nothing to wait', async () => ((await heldAt(beta)) === 0 ? true : undefined))
})

it('is joined by two users at once, by one of them twice', async () => {
  const held = holdBack(alpha)
  const joining = [join(beta, bob), join(beta, bob), join(beta, dora)]
  await Promise.race(joining)
  held.release()
  await Promise.all(joining)
  expect(await membersAt(beta, bob)).toMatchObject({ [bob.userId]: 'join', [dora.userId]: 'join' })
  await expectWhole()
})

it('goes on after a restart, with what waited before it', async () => {
  const held = holdBack(alpha)
  await join(beta, bob)
  await say(alpha, members[0]!, 'before the restart')
  await waitUntil('it to wait', async () => ((await heldAt(beta)) > 0 ? true : undefined))
  await beta.server.restart()
  beta.front.handler = proxyTo(beta.server.baseUrl)
  await say(beta, bob, 'after the restart')
  expect((await sync(beta, bob)).rooms?.join?.[room]).toBeUndefined()
  held.release()
  await waitUntil('both', async () => {
    const texts = textsIn(await timelineAt(beta, bob))
    return texts.includes('before the restart') && texts.includes('after the restart') ? true : undefined
  })
  await expectWhole()
})

const isSend = (url: string) => url.includes('/federation/v1/send/')

it('tells a server of the room that is known by the word of another alone, also after a restart', async () => {
  const held = holdBack(alpha)
  instead(gamma, isSend, (_, response) => void response.writeHead(503).end('{}'))
  await join(beta, bob)
  const tried = () => gamma.front.requests.filter(({ url }) => isSend(url)).length
  const before = tried()
  const said = await say(beta, bob, 'nobody else has this')
  await waitUntil('gamma to be tried', () => (tried() > before ? true : undefined))
  await beta.server.restart()
  beta.front.handler = proxyTo(beta.server.baseUrl)
  // Those that a start takes up of which nothing was noted before a crash.
  const own = await withDatabase(beta, (db) => getOwnEvents(db, 0, beta.name, 1_000))
  expect(own).toContain(await withDatabase(beta, (db) => numberOf(db, said)))
  gamma.front.handler = proxyTo(gamma.server.baseUrl)
  await waitUntil('the message', async () =>
    textsIn(await timelineAt(gamma, carol)).includes('nobody else has this') ? true : undefined,
  )
  held.release()
  await expectWhole()
})

it('shows what was read meanwhile, also after a restart, and keeps nothing of those who cannot have read it', async () => {
  const held = holdBack(alpha)
  await join(beta, bob)
  const kept = () =>
    withDatabase(beta, (db) => db.query<{ user_id: string; json: string }>('SELECT user_id, json FROM held_receipt'))
  const read = async (text: string): Promise<string> => {
    const said = await say(alpha, members[0]!, text)
    await waitUntil(text, async () => (textsIn(await timelineAt(gamma, carol)).includes(text) ? true : undefined))
    await act(gamma, carol, `receipt/m.read/${enc(said)}`)
    await waitUntil(`that ${text} was read`, async () => (await kept()).some(({ json }) => json.includes(said)))
    return said
  }
  await read('one')
  const last = await read('two')
  const stranger = await openStranger(street.authority)
  const to = { name: beta.name, url: beta.server.baseUrl }
  for (const [n, { ask, name, userId }] of [
    { ask: askingAs(gamma.name, gamma.signingKey), name: gamma.name, userId: alice.userId },
    { ask: stranger.ask, name: stranger.name, userId: `@eve:${stranger.name}` },
  ].entries()) {
    const content = { [room]: { 'm.read': { [userId]: { event_ids: [last], data: { ts: 1 } } } } }
    const body = { origin: name, origin_server_ts: 1, pdus: [], edus: [{ edu_type: 'm.receipt', content }] }
    expect((await ask(to, 'PUT', `/_matrix/federation/v1/send/read${n}`, { body })).status).toBe(200)
  }
  expect((await kept()).map(({ user_id }) => user_id)).toEqual([carol.userId])
  await beta.server.restart()
  beta.front.handler = proxyTo(beta.server.baseUrl)
  held.release()
  await waitUntil('the receipt', async () => {
    const { ephemeral } = (await sync(beta, bob, LAZY)).rooms.join[room]
    return ephemeral?.events.some(({ content }: Json) => content[last]?.['m.read']?.[carol.userId]) ? true : undefined
  })
  await waitUntil('nothing kept', async () => ((await kept()).length === 0 ? true : undefined))
  await stranger.close()
  await expectWhole()
})

it('asks another server where the one that let us in is gone', async () => {
  instead(alpha, isState, (_, response) => void response.destroy())
  await join(beta, bob)
  const seen = () => gamma.front.requests.filter(({ url }) => isState(url)).length
  await waitUntil('gamma to be asked', () => (seen() > 0 ? true : undefined))
  expect(Object.keys(await membersAt(beta, bob))).toHaveLength(MEMBERS + 3)
  await expectWhole()
})

it('is left at once, and says to the operator what is missing', async () => {
  for (const at of [alpha, gamma]) instead(at, isState, (_, response) => void response.destroy())
  await join(beta, bob)
  const inspect = () => withDatabase(beta, (db, roomNid) => inspectRoom(db, roomNid, {}))
  await waitUntil('a failure', async () => ((await inspect()).includes('tried in vain') ? true : undefined))
  expect(await inspect()).toMatch(new RegExp(`most are still to be fetched, since .*, when ${alpha.name} let us in`))
  await act(beta, bob, 'leave')
  await waitUntil('the leave', async () => ((await membersAt(alpha, alice))[bob.userId] === 'leave' ? true : undefined))
  expect(await inspect()).toContain('was left before most could be fetched')
  await join(beta, bob)
  expect(await inspect()).not.toContain('fetched')
  await expectWhole()
})

it.each([
  ['kick', 'leave'],
  ['ban', 'ban'],
])('a %s before the members have come takes effect, by one whom nobody told us of', async (what, membership) => {
  const moderator = members[5]!
  const levels = await alpha.api.call('GET', `/rooms/${enc(room)}/state/m.room.power_levels`, { token: alice.token })
  const users = { ...levels.users, [moderator.userId]: 50 }
  await alpha.api.call('PUT', `/rooms/${enc(room)}/state/m.room.power_levels`, {
    token: alice.token,
    body: { ...levels, users },
  })
  const held = holdBack(alpha)
  const before = await sync(beta, bob, LAZY)
  await join(beta, bob)
  const { next_batch: since } = await sync(beta, bob, LAZY, before.next_batch)
  await waitUntil('alpha to be asked', () => (held.asked() > 0 ? true : undefined))
  await act(alpha, moderator, what, { user_id: bob.userId, reason: 'too soon' })
  await waitUntil('it to wait', async () => ((await heldAt(beta)) > 0 ? true : undefined))
  held.release()
  const shown = await waitUntil('the end', async () => {
    const left = (await sync(beta, bob, LAZY, since)).rooms?.leave?.[room]
    return left?.timeline.events.find(({ state_key }: Json) => state_key === bob.userId)
  })
  expect(shown).toMatchObject({ sender: moderator.userId, content: { membership, reason: 'too soon' } })
  const joined = await beta.api.call('GET', '/joined_rooms', { token: bob.token })
  expect(joined.joined_rooms).not.toContain(room)
  await waitUntil('nothing to wait', async () => ((await heldAt(beta)) === 0 ? true : undefined))
  await expectSound()
  if (what === 'ban') return expect(join(beta, bob)).rejects.toMatchObject({ errcode: 'M_FORBIDDEN' })
  await join(beta, bob)
  await expectWhole()
})

it('a kick is looked at when it comes, however long the servers have been refusing us', async () => {
  for (const at of [alpha, gamma]) {
    instead(at, isState, (_, response) => void response.writeHead(403).end('{"errcode":"M_FORBIDDEN","error":"out"}'))
  }
  await join(beta, bob)
  const failures = () => withDatabase(beta, async (db, roomNid) => (await findPartialState(db, roomNid))?.failures ?? 0)
  await waitUntil('a failure', async () => ((await failures()) > 0 ? true : undefined))
  await withDatabase(beta, (db, roomNid) => db.tx((tx) => noteFailure(tx, roomNid, 20, 'in vain for days')))
  await beta.server.restart()
  beta.front.handler = proxyTo(beta.server.baseUrl)
  await waitUntil('the next', async () => ((await failures()) > 20 ? true : undefined))
  await act(alpha, alice, 'kick', { user_id: bob.userId })
  await waitUntil('the end', async () => {
    const { joined_rooms } = await beta.api.call('GET', '/joined_rooms', { token: bob.token })
    return joined_rooms.includes(room) ? undefined : true
  })
})

it('tells a server that was put out of the room by whom, and no other', async () => {
  await join(beta, bob)
  await expectWhole()
  const memberOf = async (who: Account) => {
    const chunk = await alpha.api.call('GET', `/rooms/${enc(room)}/state`, { token: alice.token })
    return chunk.find(({ state_key }: Json) => state_key === who.userId).event_id
  }
  await act(alpha, alice, 'invite', { user_id: dora.userId })
  await act(alpha, alice, 'kick', { user_id: dora.userId })
  await act(alpha, alice, 'kick', { user_id: bob.userId })
  const ask = async (at: Neighbour, eventId: string) => {
    const uri = `/_matrix/federation/v1/event_auth/${enc(room)}/${enc(eventId)}`
    return askingAs(at.name, at.signingKey)({ name: alpha.name, url: alpha.server.baseUrl }, 'GET', uri)
  }
  const why = await ask(beta, await memberOf(bob))
  expect(why.status).toBe(200)
  expect(why.body.auth_chain.map(({ sender }: Json) => sender)).toContain(alice.userId)
  for (const id of [await memberOf(dora), await memberOf(alice)]) expect((await ask(beta, id)).status).toBe(403)
})

it('shows a server that is not in the room nothing of it', async () => {
  const held = holdBack(alpha)
  await join(beta, bob)
  const stranger = await openStranger(street.authority)
  const event = { type: 'm.room.message', room_id: room, sender: `@eve:${stranger.name}`, event_id: '$x' }
  const at = { name: beta.name, url: beta.server.baseUrl }
  const body = { origin: stranger.name, origin_server_ts: 1, pdus: [event], edus: [] }
  const nowhere = { ...body, pdus: [{ ...event, room_id: `!nowhere:${alpha.name}` }] }
  const answers = [
    await stranger.ask(at, 'PUT', '/_matrix/federation/v1/send/1', { body }),
    await stranger.ask(at, 'PUT', '/_matrix/federation/v1/send/2', { body: nowhere }),
  ]
  expect(answers[0]).toEqual(answers[1])
  const states = await stranger.ask(at, 'GET', `/_matrix/federation/v1/state_ids/${enc(room)}?event_id=$x`)
  expect(states.status).toBe(403)
  await stranger.close()
  held.release()
  await expectWhole()
})

test('B16: a state that GET state refuses is fetched by state_ids and event', async () => {
  const refuse: TlsHandler = (_, response) =>
    void response.writeHead(400, { 'content-type': 'application/json' }).end('{"errcode":"M_TOO_LARGE","error":"no"}')
  for (const at of [alpha, gamma]) {
    at.front.requests.length = 0
    instead(at, isState, refuse)
  }
  await join(beta, bob)
  await waitUntil('all members are known', async () => Object.keys(await membersAt(beta, bob)).length === MEMBERS + 3)
  const asked = [...alpha.front.requests, ...gamma.front.requests].map(({ url }) => url)
  expect(asked.some((url) => url.includes('/v1/state_ids/'))).toBe(true)
  expect(asked.filter((url) => url.includes('/v1/event/')).length).toBeGreaterThan(MEMBERS)
})
