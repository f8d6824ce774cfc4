import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BuiltEvent, buildEvent, type EventDraft } from '../../src/core/event/build.ts'
import type { EventReference } from '../../src/core/event/format.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../src/core/ids.ts'
import type { JsonObject, JsonValue } from '../../src/core/json.ts'
import { type RoomVersion, roomVersion } from '../../src/core/room-version.ts'
import type { Account, Json } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger, type Stranger } from '../support/stranger.ts'
import { waitUntil } from '../support/wait.ts'

const F = '/_matrix/federation'
const C = '/_matrix/client/v3'
const enc = encodeURIComponent
const LIMIT = 2n ** 63n - 1n
const LARGE = '123456789012345678901234567890'
const NEAR = '9007199254740993'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let stranger: Stranger
let alice: Account
let bob: Account

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  stranger = await openStranger(street.authority)
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
})

afterAll(async () => {
  await stranger.close()
  await street.close()
})

/** What a client sends and gets, as text: a parsed number has lost its digits. */
async function raw(at: Neighbour, who: Account, method: string, path: string, body?: string) {
  const headers = { authorization: `Bearer ${who.token}`, 'content-type': 'application/json' }
  const answer = await fetch(`${at.server.baseUrl}${C}${path}`, { method, headers, ...(body && { body }) })
  return { status: answer.status, text: await answer.text() }
}

const inRoom = (room: string, rest: string) => `/rooms/${enc(room)}${rest}`

async function roomOf(version: string): Promise<string> {
  const body = { preset: 'public_chat', room_version: version }
  return (await alpha.api.call('POST', '/createRoom', { token: alice.token, body })).room_id
}

async function joinFromBeta(room: string): Promise<void> {
  await beta.api.call('POST', `/join/${enc(room)}?server_name=${alpha.name}`, { token: bob.token, body: {} })
}

describe.each(['1', '3', '5'])('B10: between servers, in room version %s', (version) => {
  let room: string
  beforeAll(async () => {
    room = await roomOf(version)
    const topic = `{"topic":"deep","n":${LARGE},"list":[-${NEAR},1,{"m":${NEAR}}]}`
    expect((await raw(alpha, alice, 'PUT', inRoom(room, '/state/m.room.topic'), topic)).status).toBe(200)
    await joinFromBeta(room)
  })

  test('B10: state that holds them comes with a join, to the digit', async () => {
    for (const [at, who] of [
      [alpha, alice],
      [beta, bob],
    ] as const) {
      const { status, text } = await raw(at, who, 'GET', inRoom(room, '/state/m.room.topic'))
      expect(status).toBe(200)
      expect(text).toContain(`"n":${LARGE}`)
      expect(text).toContain(`[-${NEAR},1,{"m":${NEAR}}]`)
    }
  })

  test('B10: a message arrives to the digit, in everything that clients read, also after a restart', async () => {
    const sent = await raw(
      alpha,
      alice,
      'PUT',
      inRoom(room, '/send/m.room.message/m1'),
      `{"msgtype":"m.text","body":"big","n":${LARGE}}`,
    )
    const { event_id: id } = JSON.parse(sent.text)
    const readable = async (path: string) => {
      const { status, text } = await raw(beta, bob, 'GET', path)
      return status === 200 && text.includes(`"n":${LARGE}`) ? true : undefined
    }
    const filter = enc(JSON.stringify({ event_fields: ['content.n'] }))
    const paths = [
      `/sync?timeout=0`,
      `/sync?timeout=0&filter=${filter}`,
      inRoom(room, `/messages?dir=b&limit=50`),
      inRoom(room, `/event/${enc(id)}`),
      inRoom(room, `/context/${enc(id)}`),
      inRoom(room, '/state'),
    ]
    for (const path of paths) await waitUntil(path, () => readable(path))
    await beta.server.restart()
    for (const path of paths) expect([path, await readable(path)]).toEqual([path, true])
  })

  test('B10: a state event that takes the place of one shows it in unsigned, to the digit', async () => {
    await raw(alpha, alice, 'PUT', inRoom(room, '/state/org.example.n'), `{"n":${NEAR}}`)
    await raw(alpha, alice, 'PUT', inRoom(room, '/state/org.example.n'), `{"n":7}`)
    await waitUntil('the new state', async () => {
      const { text } = await raw(beta, bob, 'GET', inRoom(room, '/state/org.example.n?format=event'))
      return text.includes(`"prev_content":{"n":${NEAR}}`) && text.includes('"n":7') ? true : undefined
    })
  })

  test('B10: setting the same again tells nobody; another last digit is another event', async () => {
    const put = async (digits: string) =>
      JSON.parse((await raw(alpha, alice, 'PUT', inRoom(room, '/state/org.example.same'), `{"n":${digits}}`)).text)
        .event_id
    const first = await put('9007199254740992')
    expect(await put('9007199254740992')).toBe(first)
    expect(await put('9007199254740993')).not.toBe(first)
  })

  test('B10: power levels beyond doubles keep their digits when redacted, and go on judging', async () => {
    const users = `{"${alice.userId}":${LARGE},"${bob.userId}":50}`
    const request = `{"preset":"public_chat","room_version":"${version}","power_level_content_override":{"users":${users},"extra":1}}`
    const made = await raw(alpha, alice, 'POST', '/createRoom', request)
    const ruled: string = JSON.parse(made.text).room_id
    await joinFromBeta(ruled)
    const path = inRoom(ruled, '/state/m.room.power_levels')
    const { event_id: id } = JSON.parse((await raw(alpha, alice, 'GET', `${path}?format=event`)).text)
    expect((await raw(alpha, alice, 'PUT', inRoom(ruled, `/redact/${enc(id)}/r1`), '{}')).status).toBe(200)
    await waitUntil('the redacted levels', async () => {
      const { text } = await raw(beta, bob, 'GET', path)
      return text.includes(`"${alice.userId}":${LARGE}`) && !text.includes('extra') ? true : undefined
    })
    const { text } = await raw(beta, bob, 'GET', path)
    // Who has 50 takes nothing from who has that much, and nobody gives more than they have, by the last digit.
    expect((await raw(beta, bob, 'PUT', path, text.replace(LARGE, '0'))).status).toBe(403)
    const give = (level: bigint) => text.replace(`"${bob.userId}":50`, `"${bob.userId}":${level}`)
    expect((await raw(alpha, alice, 'PUT', path, give(BigInt(LARGE) + 1n))).status).toBe(403)
    expect((await raw(alpha, alice, 'PUT', path, give(BigInt(LARGE) - 1n))).status).toBe(200)
    await waitUntil('the new levels', async () => {
      const now = await raw(beta, bob, 'GET', path)
      return now.text.includes(`"${bob.userId}":${BigInt(LARGE) - 1n}`) ? true : undefined
    })
    expect((await raw(beta, bob, 'PUT', path, text.replace(LARGE, '0'))).status).toBe(403)
  })

  test('B10: depth grows to 2^63-1 and stays there', async () => {
    const { db } = alpha.server.database
    await db.query('UPDATE room SET depth = $2 WHERE room_id = $1', [room, `${LIMIT - 2n}`])
    await alpha.server.restart()
    const depths: string[] = []
    for (let n = 0; n < 3; n++) {
      const sent = await raw(alpha, alice, 'PUT', inRoom(room, `/send/m.room.message/d${n}`), '{"body":"deep"}')
      const { event_id: id } = JSON.parse(sent.text)
      await waitUntil(
        'it to arrive',
        async () => (await raw(beta, bob, 'GET', inRoom(room, `/event/${enc(id)}`))).status === 200,
      )
      const [row] = await beta.server.database.db.query<{ json: string }>(
        'SELECT json FROM event WHERE event_id = $1',
        [id],
      )
      depths.push(/"depth":([0-9]+)/.exec(row!.json)![1]!)
    }
    expect(depths).toEqual([`${LIMIT - 1n}`, `${LIMIT}`, `${LIMIT}`])
    // Beta builds on it too, also once it has read the room again.
    await beta.server.restart()
    const answer = await raw(beta, bob, 'PUT', inRoom(room, '/send/m.room.message/back'), '{"body":"still here"}')
    expect(answer.status).toBe(200)
    const { event_id: id } = JSON.parse(answer.text)
    await waitUntil(
      'the answer',
      async () => (await raw(alpha, alice, 'GET', inRoom(room, `/event/${enc(id)}`))).status === 200,
    )
  })
})

/** A member of the stranger's in a room of alpha, who sends what a test wants. */
async function enter(room: string, version: RoomVersion) {
  const eve = `@eve:${stranger.name}` as UserId
  const to = { name: alpha.name, url: alpha.server.baseUrl }
  const make = await stranger.ask(to, 'GET', `${F}/v1/make_join/${enc(room)}/${enc(eve)}?ver=${version.id}`)
  const own = (): { event_id?: EventId } =>
    version.eventIdFormat === 'opaque'
      ? { event_id: `$${randomBytes(9).toString('hex')}:${stranger.name}` as EventId }
      : {}
  const build = (more: Partial<EventDraft>): BuiltEvent => {
    const { event } = make.body as { event: EventDraft }
    const { depth, prev_events, auth_events } = event
    const place = {
      room_id: room as RoomId,
      sender: eve,
      depth,
      prev_events,
      auth_events,
      origin_server_ts: Date.now(),
    }
    const message = { type: 'm.room.message', content: { body: 'x' } }
    return buildEvent(version, { ...place, ...message, ...own(), ...more }, stranger.name as ServerName, stranger.key)
  }
  const join = build({ type: 'm.room.member', state_key: eve, content: { membership: 'join' } })
  const path = `${F}/v2/send_join/${enc(room)}/${enc(join.eventId)}`
  const answer = await stranger.ask(to, 'PUT', path, { body: join.pdu as JsonObject })
  expect(answer.status).toBe(200)
  const state = (answer.body as { state: Json[] }).state
  const [create, levels] = ['m.room.create', 'm.room.power_levels'].map((type) =>
    state.find((one) => one.type === type),
  )
  expect([create, levels]).not.toContain(undefined)
  const auth = (join.pdu.auth_events as EventReference[]).filter((reference) => {
    const cited = Array.isArray(reference) ? reference[0] : reference
    return !state.some((one) => one.event_id === cited && one.type === 'm.room.join_rules')
  })
  return {
    say: (content: JsonObject, more: Partial<EventDraft> = {}) =>
      build({ content, prev_events: [join.reference], auth_events: [...auth.slice(0, 2), join.reference], ...more }),
    async send(pdus: readonly BuiltEvent[]) {
      const body = {
        origin: stranger.name,
        origin_server_ts: 1,
        pdus: pdus.map(({ pdu }) => pdu as JsonValue),
        edus: [],
      }
      return stranger.ask(to, 'PUT', `${F}/v1/send/${randomBytes(6).toString('hex')}`, { body })
    },
  }
}

describe('B10: one transaction', () => {
  test.each(['1', '4'])('B10: is judged event by event, in room version %s', async (version) => {
    const room = await roomOf(version)
    const { say, send } = await enter(room, roomVersion(version)!)
    const huge = 10n ** 400n
    const fine = say({ n: BigInt(LARGE), huge }, { depth: LIMIT, origin_server_ts: 2n ** 62n })
    const plain = say({ n: 1 })
    const { pdu } = plain
    const tooDeep = {
      ...plain,
      pdu: { ...pdu, ...(pdu.event_id && { event_id: `$2${pdu.event_id.slice(1)}` as EventId }), depth: LIMIT + 1n },
    }
    const { status, body } = await send([fine, tooDeep, plain])
    expect(status).toBe(200)
    expect(body.pdus[fine.eventId]).toEqual({})
    expect(body.pdus[plain.eventId]).toEqual({})
    expect(Object.values(body.pdus)).toContainEqual({ error: expect.stringContaining('depth') })
    const { text } = await raw(alpha, alice, 'GET', inRoom(room, `/event/${enc(fine.eventId)}`))
    expect(text).toContain(`"n":${LARGE}`)
    expect(text).toContain(`"huge":${huge}`)
    expect(text).toContain(`"origin_server_ts":${2n ** 62n}`)
    // A time that far ahead spoils nothing.
    for (const path of ['/sync?timeout=0', inRoom(room, '/messages?dir=b')]) {
      expect((await raw(alpha, alice, 'GET', path)).text).toContain(LARGE)
    }
    expect((await raw(alpha, alice, 'PUT', inRoom(room, '/send/m.room.message/on'), '{"body":"on"}')).status).toBe(200)
  })

  test.each(['6', '10'])('B10: has them refused alone in room version %s, and the others taken in', async (version) => {
    const room = await roomOf(version)
    const { say, send } = await enter(room, roomVersion(version)!)
    const [large, plain] = [say({ n: BigInt(LARGE) }), say({ n: 1 })]
    const { status, body } = await send([large, plain])
    expect(status).toBe(200)
    expect(body.pdus).toEqual({
      [large.eventId]: { error: expect.stringContaining('past 2^53-1') },
      [plain.eventId]: {},
    })
  })
})

describe('B10: a client of ours', () => {
  test.each(['6', '11'])('B10: is refused them in room version %s', async (version) => {
    const room = await roomOf(version)
    for (const rest of ['/send/m.room.message/1', '/state/m.room.topic']) {
      const { status, text } = await raw(alpha, alice, 'PUT', inRoom(room, rest), `{"n":${LARGE}}`)
      expect([status, JSON.parse(text).errcode]).toEqual([400, 'M_BAD_JSON'])
    }
  })

  test('B10: makes a room with them, where its version has them', async () => {
    const create = (version: string) =>
      raw(
        alpha,
        alice,
        'POST',
        '/createRoom',
        `{"room_version":"${version}","name":null,"initial_state":[{"type":"org.example.n","state_key":"","content":{"n":${LARGE}}}]}`,
      )
    const { status, text } = await create('5')
    expect(status).toBe(200)
    const state = await raw(alpha, alice, 'GET', inRoom(JSON.parse(text).room_id, '/state/org.example.n'))
    expect(state.text).toBe(`{"n":${LARGE}}`)
    expect((await create('6')).status).toBe(400)
  })
})
