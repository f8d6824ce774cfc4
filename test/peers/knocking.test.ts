import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { buildEvent, type EventDraft } from '../../src/core/event/build.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import type { Account, Json } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger, type Stranger } from '../support/stranger.ts'
import { json, proxyTo } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let stranger: Stranger
let alice: Account
let bob: Account
let room: string

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta, stranger] = await Promise.all([street.open(), street.open(), openStranger(street.authority)])
  alice = await alpha.person('alice')
})

afterAll(async () => {
  await stranger.close()
  await street.close()
})

let people = 0

beforeEach(async () => {
  bob = await beta.person(`bob${people++}`)
  room = await makeRoom('knock')
})

afterEach(() => {
  alpha.front.handler = proxyTo(alpha.server.baseUrl)
})

const enc = encodeURIComponent

async function makeRoom(join_rule: string, room_version = '11'): Promise<string> {
  const initial_state = [{ type: 'm.room.join_rules', content: { join_rule } }]
  const body = { preset: 'private_chat', name: 'The club', room_version, initial_state }
  return (await alpha.api.call('POST', '/createRoom', { token: alice.token, body })).room_id
}

const knock = (body: object = {}, at = room) =>
  beta.api.request('POST', `/knock/${enc(at)}?via=${enc(alpha.name)}`, { token: bob.token, body })

const act = (at: Neighbour, { token }: Account, what: string, body: object = {}) =>
  at.api.call('POST', `/rooms/${enc(room)}/${what}`, { token, body })

const sectionOf = async (name: 'knock' | 'invite' | 'leave' | 'join', { token } = bob): Promise<Json> => {
  const filter = enc(JSON.stringify({ room: { include_leave: true } }))
  return (await beta.api.call('GET', `/sync?timeout=0&filter=${filter}`, { token })).rooms?.[name]?.[room]
}

const bobAtAlpha = async (): Promise<Json> => {
  const { chunk } = await alpha.api.call('GET', `/rooms/${enc(room)}/members`, { token: alice.token })
  return chunk.find(({ state_key }: Json) => state_key === bob.userId)
}

const becomes = (membership: string) =>
  waitUntil(membership, async () => (await bobAtAlpha())?.content.membership === membership)

describe('knocking at a room of another server', () => {
  it('is seen there, with its reason, and here, with what the room shows', async () => {
    const answer = await knock({ reason: 'I have cake' })
    expect(answer).toEqual({ status: 200, body: { room_id: room } })
    expect((await bobAtAlpha()).content).toMatchObject({ membership: 'knock', reason: 'I have cake' })
    const { knock_state } = await sectionOf('knock')
    expect(knock_state.events.map(({ type }: Json) => type)).toContain('m.room.name')
    const own = knock_state.events.find(({ state_key }: Json) => state_key === bob.userId)
    expect(own).toMatchObject({ type: 'm.room.member', sender: bob.userId, content: { membership: 'knock' } })
    const { joined_rooms } = await beta.api.call('GET', '/joined_rooms', { token: bob.token })
    expect(joined_rooms).not.toContain(room)
  })

  it('wakes a sync that waits', async () => {
    const { next_batch } = await beta.api.call('GET', '/sync?timeout=0', { token: bob.token })
    const waiting = beta.api.call('GET', `/sync?timeout=20000&since=${next_batch}`, { token: bob.token })
    await knock()
    expect(Object.keys((await waiting).rooms.knock)).toEqual([room])
  })

  it('is done by an alias, of which this server learns the room', async () => {
    const alias = `#club${people}:${alpha.name}`
    await alpha.api.call('PUT', `/directory/room/${enc(alias)}`, { token: alice.token, body: { room_id: room } })
    const answer = await beta.api.call('POST', `/knock/${enc(alias)}`, { token: bob.token, body: {} })
    expect(answer).toEqual({ room_id: room })
    expect(await sectionOf('knock')).toBeDefined()
  })

  it('is accepted by an invitation, which lets in', async () => {
    await knock()
    await act(alpha, alice, 'invite', { user_id: bob.userId })
    await waitUntil('the invitation', async () => (await sectionOf('invite')) !== undefined)
    expect(await sectionOf('knock')).toBeUndefined()
    await act(beta, bob, 'join')
    expect((await bobAtAlpha()).content.membership).toBe('join')
  })

  it.each(['7', '10', '12'])('is taken back, in room version %s', async (version) => {
    room = await makeRoom('knock', version)
    expect((await knock()).status).toBe(200)
    await act(beta, bob, 'leave')
    await becomes('leave')
    expect(await sectionOf('knock')).toBeUndefined()
    expect(await sectionOf('leave')).toBeDefined()
    // And is not forbidden another time.
    expect((await knock()).status).toBe(200)
    expect(await sectionOf('knock')).toBeDefined()
  })

  it.each(['kick', 'ban'])('is refused by a %s', async (how) => {
    await knock()
    await act(alpha, alice, how, { user_id: bob.userId, reason: 'no' })
    await waitUntil('the refusal', async () => (await sectionOf('leave')) !== undefined)
    const { timeline } = await sectionOf('leave')
    expect(timeline.events.at(-1)).toMatchObject({ sender: alice.userId, content: { reason: 'no' } })
    expect(await sectionOf('knock')).toBeUndefined()
  })

  it('is not refused by a server that does not know what it is called', async () => {
    await knock()
    const mallory = `@mallory:${stranger.name}`
    const draft = {
      ...{ type: 'm.room.member', room_id: room, sender: mallory, state_key: bob.userId },
      ...{ content: { membership: 'leave' }, depth: 9, origin_server_ts: Date.now() },
      ...{ prev_events: [], auth_events: [`$${'A'.repeat(43)}`] },
    } as unknown as EventDraft
    const { pdu } = buildEvent(roomVersion('11')!, draft, stranger.name, stranger.key)
    const to = { name: beta.name, url: beta.server.baseUrl }
    const uri = `/_matrix/federation/v1/send/${people}`
    const body = { origin: stranger.name, origin_server_ts: Date.now(), pdus: [pdu as JsonObject] }
    expect((await stranger.ask(to, 'PUT', uri, { body })).status).toBe(200)
    expect(await sectionOf('knock')).toBeDefined()
  })

  it.each(['invite', 'public'])('is forbidden where the rule is %s', async (rule) => {
    room = await makeRoom(rule)
    const { status, body } = await knock()
    expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    expect(await sectionOf('knock')).toBeUndefined()
  })

  it('is forbidden in a room version that knows no knocking', async () => {
    room = await makeRoom('invite', '6')
    expect((await knock()).status).toBeGreaterThanOrEqual(400)
  })

  it('needs somebody to be asked', async () => {
    const { status, body } = await beta.api.request('POST', `/knock/${enc('!nowhere')}`, { token: bob.token, body: {} })
    expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
  })
})

describe('a template for a knock', () => {
  const good = () => ({
    ...{ type: 'm.room.member', room_id: room, sender: bob.userId, state_key: bob.userId },
    ...{ content: { membership: 'knock' }, depth: 5, prev_events: ['$a'], auth_events: ['$b'], origin_server_ts: 1 },
  })
  const lies: readonly [string, (event: Json) => unknown][] = [
    ['another type', (event) => ({ ...event, type: 'm.room.power_levels' })],
    ['another sender', (event) => ({ ...event, sender: `@other:${beta.name}` })],
    ['another state key', (event) => ({ ...event, state_key: `@other:${beta.name}` })],
    ['another room', (event) => ({ ...event, room_id: '!other:example.org' })],
    ['a join', (event) => ({ ...event, content: { membership: 'join' } })],
    ['no place', ({ prev_events: _, ...event }) => event],
    ['references of another version', (event) => ({ ...event, auth_events: [['$b', { sha256: 'x' }]] })],
    ['no event', () => 'knock knock'],
  ]

  it.each(lies)('with %s is not signed', async (_what, lie) => {
    const before = alpha.front.requests.length
    alpha.front.handler = json({ room_version: '11', event: lie(good()) })
    expect((await knock()).status).toBe(502)
    const asked = alpha.front.requests.slice(before).map(({ method, url }) => [method, url.split('/')[4]])
    expect(asked.filter(([method]) => method === 'PUT')).toEqual([])
    expect(await sectionOf('knock')).toBeUndefined()
  })

  it('adds nothing to what is sent', async () => {
    const sent: Json[] = []
    alpha.front.handler = (request, response) => {
      if (request.method === 'PUT') sent.push(JSON.parse(request.body))
      const content = { membership: 'knock', join_authorised_via_users_server: alice.userId, more: 1 }
      const event = { ...good(), content, unsigned: { a: 1 }, hashes: { sha256: 'x' }, extra: true }
      const shown = { knock_room_state: { not: 'a list' } }
      json(request.method === 'PUT' ? shown : { room_version: '11', event })(request, response)
    }
    expect((await knock()).status).toBe(200)
    expect(sent).toHaveLength(1)
    expect(Object.keys(sent[0].content).sort()).toEqual(
      ['displayname', 'membership'].filter((key) => key in sent[0].content),
    )
    expect(sent[0].extra ?? sent[0].unsigned).toBeUndefined()
    const { knock_state } = await sectionOf('knock')
    expect(knock_state.events).toHaveLength(1)
  })
})
