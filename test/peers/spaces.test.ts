import { afterAll, afterEach, beforeAll, describe, expect, it, test } from 'vitest'
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
let carol: Account

/** How far the servers' clocks are ahead. */
let shiftMs = 0

beforeAll(async () => {
  street = openNeighbourhood({ clock: { now: () => Date.now() + shiftMs } })
  ;[alpha, beta, stranger] = await Promise.all([street.open(), street.open(), openStranger(street.authority)])
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
  carol = await beta.person('carol')
})

afterAll(async () => {
  await stranger.close()
  await street.close()
})

afterEach(() => {
  for (const { front, server } of [alpha, beta]) front.handler = proxyTo(server.baseUrl)
})

const enc = encodeURIComponent

interface Kind {
  readonly rule?: object
  readonly isSpace?: boolean
  readonly version?: string
}

const PUBLIC = { join_rule: 'public' }
const INVITE = { join_rule: 'invite' }

async function make(at: Neighbour, by: Account, called: string, kind: Kind = {}): Promise<string> {
  const { rule = PUBLIC, isSpace, version = '11' } = kind
  const body = {
    ...{ name: called, preset: 'private_chat', room_version: version },
    ...(isSpace && { creation_content: { type: 'm.space' } }),
    initial_state: [{ type: 'm.room.join_rules', content: rule }],
  }
  return (await at.api.call('POST', '/createRoom', { token: by.token, body })).room_id
}

const space = (at: Neighbour, by: Account, called: string, kind: Kind = {}) =>
  make(at, by, called, { ...kind, isSpace: true })

const add = (at: Neighbour, by: Account, parent: string, child: string, content: object = { via: [at.name] }) =>
  at.api.call('PUT', `/rooms/${enc(parent)}/state/m.space.child/${enc(child)}`, { token: by.token, body: content })

const ask = (at: Neighbour, { token }: Account, root: string, query = '') =>
  at.api.request('GET', `/_matrix/client/v1/rooms/${enc(root)}/hierarchy${query}`, { token })

async function treeOf(at: Neighbour, by: Account, root: string, query = ''): Promise<Json[]> {
  const { status, body } = await ask(at, by, root, query)
  expect([status, body.errcode, body.next_batch]).toEqual([200, undefined, undefined])
  return body.rooms
}

const namesOf = (rooms: Json[]): string[] => rooms.map(({ name }) => name)
const askedOf = ({ front }: Neighbour) => front.requests.filter(({ url }) => url.includes('/hierarchy/')).length

const summary = (at: Neighbour, token: string | undefined, room: string, query = '') =>
  at.api.request('GET', `/_matrix/client/v1/room_summary/${enc(room)}${query}`, token === undefined ? {} : { token })

describe('a space of this server', () => {
  it('is shown depth first, its rooms in their order, each once', async () => {
    const root = await space(alpha, alice, 'root')
    const inner = await space(alpha, alice, 'inner')
    const rooms = []
    for (const each of ['a', 'b', 'c', 'd']) rooms.push(await make(alpha, alice, each))
    const [a, b, c, d] = rooms as [string, string, string, string]
    const via = [alpha.name]
    await add(alpha, alice, root, a)
    await add(alpha, alice, root, b, { via, order: 'z' })
    await add(alpha, alice, root, inner, { via, order: 'a' })
    await add(alpha, alice, root, d, { via, order: 'longer than fifty characters, so that it does not count' })
    await add(alpha, alice, inner, c)
    await add(alpha, alice, inner, root)
    await add(alpha, alice, inner, a)
    const shown = await treeOf(alpha, alice, root)
    expect(namesOf(shown)).toEqual(['root', 'inner', 'c', 'a', 'b', 'd'])
    expect(shown[0]).toMatchObject({ room_type: 'm.space', room_version: '11', num_joined_members: 1, ...PUBLIC })
    expect(shown[0].children_state.map(({ state_key }: Json) => state_key)).toEqual([inner, b, a, d])
    const keys = ['content', 'origin_server_ts', 'sender', 'state_key', 'type']
    expect(Object.keys(shown[0].children_state[0]).sort()).toEqual(keys)
    expect(shown[2].children_state).toEqual([])
  })

  it('leaves out what was taken back or leads nowhere, and what is not suggested where that is asked', async () => {
    const root = await space(alpha, alice, 'root')
    const gone = await make(alpha, alice, 'gone')
    await add(alpha, alice, root, gone)
    await add(alpha, alice, root, gone, {})
    await add(alpha, alice, root, await make(alpha, alice, 'good'))
    await add(alpha, alice, root, await make(alpha, alice, 'best'), { via: [alpha.name], suggested: true })
    await add(alpha, alice, root, 'no room')
    expect(namesOf(await treeOf(alpha, alice, root))).toEqual(['root', 'good', 'best'])
    const suggested = await treeOf(alpha, alice, root, '?suggested_only=true')
    expect(namesOf(suggested)).toEqual(['root', 'best'])
    expect(suggested[0].children_state).toHaveLength(1)
  })

  it('names nothing where it is no space', async () => {
    const room = await make(alpha, alice, 'no space')
    await add(alpha, alice, room, await make(alpha, alice, 'child'))
    expect(await treeOf(alpha, alice, room)).toMatchObject([{ name: 'no space', children_state: [] }])
  })

  it('is followed as deep as is asked, and given in pages', async () => {
    const root = await space(alpha, alice, 'root')
    const inner = await space(alpha, alice, 'inner')
    await add(alpha, alice, root, inner)
    await add(alpha, alice, inner, await make(alpha, alice, 'leaf'))
    expect(namesOf(await treeOf(alpha, alice, root, '?max_depth=0'))).toEqual(['root'])
    expect(namesOf(await treeOf(alpha, alice, root, '?max_depth=1'))).toEqual(['root', 'inner'])
    const first = (await ask(alpha, alice, root, '?limit=2')).body
    expect(namesOf(first.rooms)).toEqual(['root', 'inner'])
    const from = `?from=${enc(first.next_batch)}`
    expect(namesOf(await treeOf(alpha, alice, root, from))).toEqual(['leaf'])
    const wrong = [`${from}&max_depth=1`, `${from}&suggested_only=true`, '?from=t5', '?limit=0', '?max_depth=-1']
    for (const query of wrong) expect([query, (await ask(alpha, alice, root, query)).status]).toEqual([query, 400])
  })

  it('shows each only what they may join or see', async () => {
    const dora = await alpha.person('dora')
    const root = await space(alpha, alice, 'root')
    const allow = [{ type: 'm.room_membership', room_id: root }]
    const rules = [PUBLIC, { join_rule: 'knock' }, INVITE, { join_rule: 'restricted', allow }]
    for (const rule of rules) await add(alpha, alice, root, await make(alpha, alice, rule.join_rule, { rule }))
    expect(namesOf(await treeOf(alpha, dora, root))).toEqual(['root', 'public', 'knock'])
    await alpha.api.call('POST', `/join/${enc(root)}`, { token: dora.token, body: {} })
    const shown = await treeOf(alpha, dora, root)
    expect(namesOf(shown)).toEqual(['root', 'public', 'knock', 'restricted'])
    expect(shown[3].allowed_room_ids).toEqual([root])
    const invited = (await treeOf(alpha, alice, root))[3].room_id
    await alpha.api.call('POST', `/rooms/${enc(invited)}/invite`, {
      token: alice.token,
      body: { user_id: dora.userId },
    })
    expect(namesOf(await treeOf(alpha, dora, root))).toContain('invite')
    expect(await treeOf(alpha, alice, root)).toHaveLength(5)
  })

  it('is not told from one that there is not', async () => {
    const dora = await alpha.person('dora2')
    const hidden = await space(alpha, alice, 'hidden', { rule: INVITE })
    const [one, other] = await Promise.all([ask(alpha, dora, hidden), ask(alpha, dora, `!nothing:${alpha.name}`)])
    expect(one).toEqual(other)
    expect([one.status, one.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
  })
})

describe('spaces across servers', () => {
  it('are followed through `via`, and remembered', async () => {
    const far = await space(alpha, alice, 'far')
    const inner = await space(alpha, alice, 'inner')
    await add(alpha, alice, far, await make(alpha, alice, 'open'))
    await add(alpha, alice, far, await make(alpha, alice, 'closed', { rule: INVITE }))
    await add(alpha, alice, far, inner)
    await add(alpha, alice, inner, await make(alpha, alice, 'leaf'))
    const root = await space(beta, bob, 'root')
    await add(beta, bob, root, far, { via: [alpha.name] })
    const before = askedOf(alpha)
    const shown = await treeOf(beta, bob, root)
    expect(namesOf(shown)).toEqual(['root', 'far', 'open', 'inner', 'leaf'])
    expect(shown[1].children_state).toHaveLength(3)
    expect(askedOf(alpha) - before).toBe(2)
    await treeOf(beta, carol, root)
    expect(askedOf(alpha) - before).toBe(2)
  })

  test('B17: a refusal is remembered for 10 s', async () => {
    const far = await space(alpha, alice, 'far', { rule: INVITE })
    const root = await space(beta, bob, 'root')
    await add(beta, bob, root, far, { via: [alpha.name] })
    const before = askedOf(alpha)
    expect(namesOf(await treeOf(beta, bob, root))).toEqual(['root'])
    await alpha.api.call('PUT', `/rooms/${enc(far)}/state/m.room.join_rules`, { token: alice.token, body: PUBLIC })
    expect(namesOf(await treeOf(beta, bob, root))).toEqual(['root'])
    expect(askedOf(alpha) - before).toBe(1)
    shiftMs += 10_001
    expect(namesOf(await treeOf(beta, bob, root))).toEqual(['root', 'far'])
    expect(askedOf(alpha) - before).toBe(2)
  })

  it('show what is restricted to those alone who are in the room that lets in', async () => {
    const door = await make(beta, bob, 'door')
    const allow = [{ type: 'm.room_membership', room_id: door }]
    // So that alpha knows who is in.
    const way = `/join/${enc(door)}?via=${enc(beta.name)}`
    await alpha.api.call('POST', way, { token: alice.token, body: {} })
    const far = await space(alpha, alice, 'far')
    await add(alpha, alice, far, await make(alpha, alice, 'behind', { rule: { join_rule: 'restricted', allow } }))
    const root = await space(beta, bob, 'root')
    await add(beta, bob, root, far, { via: [alpha.name] })
    expect(namesOf(await treeOf(beta, bob, root))).toEqual(['root', 'far', 'behind'])
    expect(namesOf(await treeOf(beta, carol, root))).toEqual(['root', 'far'])
  })

  it.each([
    ['nothing', {}],
    ['another room', { room: { room_id: '!other:example.org', join_rule: 'public' }, children: [] }],
    ['nonsense', { room: 7, children: 'many', inaccessible_children: 5 }],
    ['no room', { room: null }],
  ])('go without a room whose server answers with %s', async (_what, answer) => {
    const far = await space(alpha, alice, 'far')
    const root = await space(beta, bob, 'root')
    await add(beta, bob, root, far, { via: [alpha.name, beta.name] })
    alpha.front.handler = json(answer)
    expect(namesOf(await treeOf(beta, bob, root))).toEqual(['root'])
  })

  it('take of an answer what makes sense', async () => {
    const far = await space(alpha, alice, 'far')
    const root = await space(beta, bob, 'root')
    await add(beta, bob, root, far, { via: [alpha.name] })
    alpha.front.handler = json({
      room: {
        room_id: far,
        ...PUBLIC,
        name: { not: 'text' },
        topic: 'x'.repeat(10_000),
        evil: true,
        children_state: [1],
      },
      children: [7, { room_id: 'no room' }],
      inaccessible_children: 'none',
    })
    const [, shown] = await treeOf(beta, bob, root)
    const plain = { num_joined_members: 0, world_readable: false, guest_can_join: false }
    expect(shown).toEqual({ room_id: far, ...PUBLIC, ...plain, children_state: [] })
  })

  it('are asked a few times for each room of a page, however many an answer names', async () => {
    const far = await space(alpha, alice, 'far')
    const root = await space(beta, bob, 'root')
    await add(beta, bob, root, far, { via: [alpha.name] })
    const asked = new Set<string>()
    // Each room of the tree is a space with 500 others, and each of them with 500 more.
    alpha.front.handler = (request, response) => {
      const [, room = ''] = /\/hierarchy\/([^?]+)/.exec(request.url) ?? []
      const id = decodeURIComponent(room)
      asked.add(id)
      const children_state = Array.from({ length: 500 }, (_, place) => ({
        ...{ type: 'm.space.child', sender: alice.userId, origin_server_ts: place },
        ...{ state_key: `!${asked.size}x${place}:${alpha.name}`, content: { via: [alpha.name] } },
      }))
      json({ room: { room_id: id, ...PUBLIC, room_type: 'm.space', children_state }, children: [] })(request, response)
    }
    const { status, body } = await ask(beta, bob, root, '?limit=8')
    expect([status, body.rooms.length]).toEqual([200, 8])
    expect(asked.size).toBeGreaterThan(6)
    expect(asked.size).toBeLessThanOrEqual(6 * 8)
    // Those that were asked for ahead may still be on their way: five at each room but the first two.
    const before = 7 + 6 * 5
    await waitUntil('all that were asked for', () => asked.size >= before)
    // What is known is not asked for again.
    const shallow = await ask(beta, bob, root, '?limit=8')
    expect([shallow.body.rooms.length, asked.size]).toEqual([8, before])
  })

  it('are not told of a room by servers that only others name', async () => {
    const far = await make(alpha, alice, 'the true name')
    const lie = { room: { room_id: far, ...PUBLIC, name: 'a lie' }, children: [], inaccessible_children: [] }
    const honest = stranger.front.handler
    stranger.front.handler = (request, response) =>
      (request.url.includes('/hierarchy/') ? json(lie) : honest)(request, response)
    const [hers, his] = [await space(beta, carol, 'hers'), await space(beta, bob, 'his')]
    await add(beta, carol, hers, far, { via: [stranger.name] })
    await add(beta, bob, his, far, { via: [alpha.name] })
    expect(namesOf(await treeOf(beta, carol, hers))).toEqual(['hers', 'a lie'])
    expect(namesOf(await treeOf(beta, bob, his))).toEqual(['his', 'the true name'])
    stranger.front.handler = honest
  })
})

describe('what other servers are shown', () => {
  const hierarchy = (room: string) =>
    stranger.ask(
      { name: alpha.name, url: alpha.server.baseUrl },
      'GET',
      `/_matrix/federation/v1/hierarchy/${enc(room)}`,
    )

  it('is a room with those that it names, and which of them are not for them', async () => {
    const root = await space(alpha, alice, 'root')
    const shut = await make(alpha, alice, 'shut', { rule: INVITE })
    await add(alpha, alice, root, await make(alpha, alice, 'open'))
    await add(alpha, alice, root, shut)
    await add(alpha, alice, root, '!unknown:example.org', { via: ['example.org'] })
    const { status, body } = await hierarchy(root)
    expect(status).toBe(200)
    expect(body.room).toMatchObject({ room_id: root, name: 'root', room_type: 'm.space' })
    expect(body.room.children_state).toHaveLength(3)
    expect(namesOf(body.children)).toEqual(['open'])
    expect(body.inaccessible_children).toEqual([shut])
  })

  it('does not tell rooms that are not for them from those that there are not', async () => {
    const shut = await space(alpha, alice, 'shut', { rule: INVITE })
    const [one, other] = [await hierarchy(shut), await hierarchy(`!nothing:${alpha.name}`)]
    expect(one).toEqual(other)
    expect([one.status, one.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
  })

  it('is nothing of a room whose access list shuts them out', async () => {
    const root = await space(alpha, alice, 'root')
    const content = { allow: ['*'], deny: [stranger.name.split(':')[0]] }
    expect((await hierarchy(root)).status).toBe(200)
    await alpha.api.call('PUT', `/rooms/${enc(root)}/state/m.room.server_acl`, { token: alice.token, body: content })
    expect((await hierarchy(root)).status).toBe(404)
  })
})

describe('the summary of a room', () => {
  it('is given to those who may join, with their membership', async () => {
    const room = await make(alpha, alice, 'here')
    const { body } = await summary(alpha, alice.token, room)
    expect(body).toMatchObject({ room_id: room, name: 'here', ...PUBLIC, room_version: '11', membership: 'join' })
    const open = await summary(alpha, undefined, room)
    expect(open).toMatchObject({ status: 200, body: { name: 'here' } })
    expect(open.body.membership).toBeUndefined()
    expect((await summary(alpha, undefined, await make(alpha, alice, 'shut', { rule: INVITE }))).status).toBe(404)
  })

  it('is had from other servers, by alias or `via`, for those who say who they are', async () => {
    const room = await make(alpha, alice, 'there', { rule: { join_rule: 'knock' } })
    const alias = `#there:${alpha.name}`
    await alpha.api.call('PUT', `/directory/room/${enc(alias)}`, { token: alice.token, body: { room_id: room } })
    const via = `?via=${enc(alpha.name)}`
    expect(await summary(beta, bob.token, room, via)).toMatchObject({ status: 200, body: { name: 'there' } })
    expect(await summary(beta, bob.token, alias)).toMatchObject({ status: 200, body: { room_id: room } })
    expect((await summary(beta, undefined, room, via)).status).toBe(404)
    const hidden = await make(alpha, alice, 'hidden', { rule: INVITE })
    const refused = await summary(beta, bob.token, hidden, via)
    expect([refused.status, refused.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
  })

  it('is given to those who are invited', async () => {
    const room = await make(alpha, alice, 'for few', { rule: INVITE })
    await alpha.api.call('POST', `/rooms/${enc(room)}/invite`, { token: alice.token, body: { user_id: bob.userId } })
    const shown = await summary(beta, bob.token, room)
    expect(shown).toMatchObject({ status: 200, body: { name: 'for few', membership: 'invite' } })
    expect((await summary(beta, carol.token, room)).status).toBe(404)
  })
})
