import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { COPIED_EVENTS_PER_COMMIT, MAX_ADDITIONAL_CREATORS } from '../../../src/domain/limits/room-upgrades.ts'
import type { Json } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person
let bob: Person
let carol: Person

beforeAll(async () => {
  // One test makes the database fail.
  house = await openHouse({ log: pino({ level: 'silent' }) })
  alice = await house.person('alice')
  bob = await house.person('bob')
  carol = await house.person('carol')
})

afterAll(() => house.close())

const enc = encodeURIComponent

/** Takes the row of an alias, so that who needs it waits; gives what lets it go. */
async function lockAlias(alias: string): Promise<() => Promise<void>> {
  let letGo: () => void = () => {}
  let ended: Promise<void> = Promise.resolve()
  await new Promise<void>((taken, failed) => {
    ended = house.server.database.db.tx(async (tx) => {
      const gate = new Promise<void>((go) => {
        letGo = go
      })
      await tx.query('SELECT FROM room_alias WHERE alias = $1 FOR UPDATE', [alias])
      taken()
      await gate
    })
    ended.catch(failed)
  })
  return () => {
    letGo()
    return ended
  }
}
const ask = (by: Person, room: string, body: object) => by.ask('POST', inRoom(room, '/upgrade'), body)
const upgrade = async (by: Person, room: string, body: object = { new_version: '12' }): Promise<string> =>
  (await by.call('POST', inRoom(room, '/upgrade'), body)).replacement_room
const state = (by: Person, room: string, type: string, key = ''): Promise<Json> =>
  by.call('GET', inRoom(room, `/state/${type}/${enc(key)}`))
const allState = (by: Person, room: string): Promise<Json[]> => by.call('GET', inRoom(room, '/state'))
const eventOf = async (by: Person, room: string, type: string, key = ''): Promise<Json> =>
  (await allState(by, room)).find((event) => event.type === type && event.state_key === key)
const tag = (by: Person, room: string, content: object = { tags: { 'm.favourite': { order: 0.5 } } }) =>
  by.call('PUT', `/user/${by.userId}/rooms/${enc(room)}/account_data/m.tag`, content)
const FAVOURITE = { tags: { 'm.favourite': { order: 0.5 } } }
const oldLevels = (by: Person, users: object, more: object = {}) => ({
  users: { [by.userId]: 100, ...users },
  users_default: 0,
  events: { 'm.room.tombstone': 50, 'm.room.name': 50 },
  events_default: 0,
  state_default: 50,
  ban: 50,
  kick: 50,
  redact: 50,
  invite: 0,
  ...more,
})

const BANS = 2 * COPIED_EVENTS_PER_COMMIT + 1

describe('an upgraded room', () => {
  it('has a tombstone that names a new room, which names the old one and its last event', async () => {
    const room = await alice.createRoom({ room_version: '9' })
    const next = await upgrade(alice, room, { new_version: '11' })
    const tombstone = await eventOf(alice, room, 'm.room.tombstone')
    expect(tombstone.content.replacement_room).toBe(next)
    expect(typeof tombstone.content.body).toBe('string')
    expect(await state(alice, next, 'm.room.create')).toEqual({
      room_version: '11',
      predecessor: { room_id: room, event_id: tombstone.event_id },
    })
  })

  it.each(['1', '2', '3', '5', '6', '10', '11', '12'])('comes to be in version %s', async (version) => {
    const room = await alice.createRoom({ room_version: '4', name: 'A room', topic: 'of a kind' })
    const next = await upgrade(alice, room, { new_version: version })
    expect(await state(alice, next, 'm.room.name')).toEqual({ name: 'A room' })
    const create = await eventOf(alice, next, 'm.room.create')
    expect(create.content.room_version).toBe(version)
    expect(create.content.predecessor.room_id).toBe(room)
    await alice.say(next, 'it works')
  })

  it('keeps its type, or has none', async () => {
    const space = await alice.createRoom({ creation_content: { type: 'm.space', 'm.federate': false } })
    const create = await state(alice, await upgrade(alice, space), 'm.room.create')
    expect(create).toMatchObject({ type: 'm.space', 'm.federate': false })
    const room = await alice.createRoom()
    const plain = await state(alice, await upgrade(alice, room), 'm.room.create')
    expect(plain).not.toHaveProperty('type')
    expect(plain).not.toHaveProperty('m.federate')
  })

  it('takes over the nine types of state, and no members but its maker', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', room_version: '10' })
    await bob.join(room)
    const contents: Record<string, object> = {
      'm.room.server_acl': { allow: ['*'], deny: ['evil.example.org'], allow_ip_literals: false },
      'm.room.encryption': { algorithm: 'm.megolm.v1.aes-sha2' },
      'm.room.name': { name: 'The name' },
      'm.room.avatar': { url: 'mxc://localhost/face' },
      'm.room.topic': { topic: 'The topic' },
      'm.room.guest_access': { guest_access: 'can_join' },
      'm.room.history_visibility': { history_visibility: 'world_readable' },
      'm.room.join_rules': { join_rule: 'knock' },
      'm.room.power_levels': oldLevels(alice, { [bob.userId]: 60 }, { notifications: { room: 20 } }),
    }
    for (const [type, content] of Object.entries(contents)) await alice.setState(room, type, content)
    await alice.setState(room, 'org.example.mine', { secret: 1 })
    await alice.setState(room, 'm.room.pinned_events', { pinned: [] })
    const next = await upgrade(alice, room, { new_version: '11' })
    for (const [type, content] of Object.entries(contents)) expect(await state(alice, next, type)).toEqual(content)
    const made = await allState(alice, next)
    expect(made.filter(({ type }) => type === 'm.room.member').map(({ state_key }) => state_key)).toEqual([
      alice.userId,
    ])
    expect(made.map(({ type }) => type)).not.toContain('org.example.mine')
    expect(made.map(({ type }) => type)).not.toContain('m.room.pinned_events')
  })

  it('has a join rule that its version knows', async () => {
    const room = await alice.createRoom({ room_version: '10' })
    await alice.setState(room, 'm.room.join_rules', { join_rule: 'knock_restricted', allow: [] })
    const next = await upgrade(alice, room, { new_version: '9' })
    expect(await state(alice, next, 'm.room.join_rules')).toEqual({ join_rule: 'invite' })
  })

  it('lets ordinary members send and invite no more in the old room, only by raising levels', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    await upgrade(alice, room)
    expect(await state(alice, room, 'm.room.power_levels')).toMatchObject({ events_default: 50, invite: 50 })
    expect(
      (await bob.ask('PUT', inRoom(room, '/send/m.room.message/late'), { msgtype: 'm.text', body: 'x' })).status,
    ).toBe(403)
    const high = await alice.createRoom({
      room_version: '10',
      power_level_content_override: {
        users_default: 60,
        events_default: 75,
        invite: 0,
        users: { [alice.userId]: 100 },
      },
    })
    await upgrade(alice, high)
    expect(await state(alice, high, 'm.room.power_levels')).toMatchObject({ events_default: 75, invite: 61 })
  })

  it('moves aliases, the canonical one and the place in the directory', async () => {
    const room = await alice.createRoom({
      preset: 'public_chat',
      room_alias_name: 'town',
      visibility: 'public',
      room_version: '10',
    })
    await alice.call('PUT', `/directory/room/${enc('#city:localhost')}`, { room_id: room })
    await alice.setState(room, 'm.room.canonical_alias', { alias: '#town:localhost', alt_aliases: ['#city:localhost'] })
    const next = await upgrade(alice, room)
    for (const alias of ['#town:localhost', '#city:localhost']) {
      expect((await house.api.call('GET', `/directory/room/${enc(alias)}`)).room_id).toBe(next)
    }
    expect(await state(alice, next, 'm.room.canonical_alias')).toEqual({
      alias: '#town:localhost',
      alt_aliases: ['#city:localhost'],
    })
    expect(await state(alice, room, 'm.room.canonical_alias')).toEqual({})
    const { chunk } = await house.api.call('GET', '/publicRooms')
    const listed = chunk.map((entry: Json) => entry.room_id)
    expect(listed).toContain(next)
    expect(listed).not.toContain(room)
  })

  it('is still banned to those who were, before anybody can join', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await alice.call('POST', inRoom(room, '/ban'), { user_id: carol.userId, reason: 'noise' })
    await alice.call('POST', inRoom(room, '/ban'), { user_id: '@spam:elsewhere.example' })
    const next = await upgrade(alice, room)
    expect(await state(alice, next, 'm.room.member', carol.userId)).toEqual({ membership: 'ban', reason: 'noise' })
    expect((await state(alice, next, 'm.room.member', '@spam:elsewhere.example')).membership).toBe('ban')
    expect((await carol.ask('POST', inRoom(next, '/join'), {})).status).toBe(403)
    const made = (await alice.call('GET', inRoom(next, '/messages?dir=f&limit=100'))).chunk as Json[]
    const at = (type: string) => made.findIndex((event) => event.type === type)
    const lastBan = made.findLastIndex(({ content }) => content.membership === 'ban')
    expect(lastBan).toBeLessThan(at('m.room.join_rules'))
  })

  it('copies bans in several commits', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    for (let i = 0; i < BANS; i++) {
      await alice.call('POST', inRoom(room, '/ban'), { user_id: `@spam${i}:elsewhere.example` })
    }
    const next = await upgrade(alice, room)
    const members = (await alice.call('GET', inRoom(next, '/members?membership=ban'))).chunk
    expect(members).toHaveLength(BANS)
  })

  it('keeps the children of a space, but those that were taken off', async () => {
    const space = await alice.createRoom({ creation_content: { type: 'm.space' } })
    await alice.setState(space, 'm.space.child', { via: ['localhost'], order: 'a' }, '!one:localhost')
    await alice.setState(space, 'm.space.child', { via: ['localhost'] }, '!two:localhost')
    await alice.setState(space, 'm.space.child', {}, '!two:localhost')
    const made = await allState(alice, await upgrade(alice, space))
    const children = made.filter(({ type }) => type === 'm.space.child')
    expect(children.map(({ state_key, content }) => [state_key, content])).toEqual([
      ['!one:localhost', { via: ['localhost'], order: 'a' }],
    ])
  })
})

describe('power levels of an upgraded room', () => {
  it('are those of the old room, for an upgrader below 100', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', room_version: '10' })
    await bob.join(room)
    const levels = oldLevels(alice, { [bob.userId]: 50 }, { state_default: 75, events: { 'm.room.tombstone': 50 } })
    await alice.setState(room, 'm.room.name', { name: 'Named by alice' })
    await alice.setState(room, 'm.room.power_levels', levels)
    const next = await upgrade(bob, room, { new_version: '11' })
    expect(await state(bob, next, 'm.room.power_levels')).toEqual(levels)
    expect(await state(bob, next, 'm.room.name')).toEqual({ name: 'Named by alice' })
    // Bob could not close the old room, whose levels take 75 to change.
    expect(await state(alice, room, 'm.room.power_levels')).toEqual(levels)
    expect((await bob.ask('PUT', inRoom(next, '/state/m.room.name'), { name: 'x' })).status).toBe(403)
  })

  it('may be above 100', async () => {
    const room = await alice.createRoom({
      room_version: '10',
      power_level_content_override: { users: { [alice.userId]: 1000 }, state_default: 500, events: {}, ban: 900 },
    })
    await alice.call('POST', inRoom(room, '/ban'), { user_id: carol.userId })
    const before = await state(alice, room, 'm.room.power_levels')
    const next = await upgrade(alice, room, { new_version: '11' })
    expect(await state(alice, next, 'm.room.power_levels')).toEqual(before)
    expect((await state(alice, next, 'm.room.member', carol.userId)).membership).toBe('ban')
  })

  it('list no creators in version 12, and take 150 for a tombstone', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', room_version: '10' })
    await alice.setState(room, 'm.room.power_levels', oldLevels(alice, { [bob.userId]: 100, [carol.userId]: 50 }))
    const next = await upgrade(alice, room, { new_version: '12', additional_creators: [bob.userId] })
    const levels = await state(alice, next, 'm.room.power_levels')
    expect(levels.users).toEqual({ [carol.userId]: 50 })
    expect(levels.events['m.room.tombstone']).toBe(150)
    expect((await state(alice, next, 'm.room.create')).additional_creators).toEqual([bob.userId])
    const again = await upgrade(alice, next, { new_version: '12' })
    expect((await state(alice, again, 'm.room.create')).additional_creators).toBeUndefined()
  })

  it('list the creators again in an older version', async () => {
    const room = await alice.createRoom({ room_version: '12', creation_content: { additional_creators: [bob.userId] } })
    const next = await upgrade(alice, room, { new_version: '11', additional_creators: [carol.userId] })
    expect((await state(alice, next, 'm.room.power_levels')).users).toEqual({ [alice.userId]: 150, [bob.userId]: 150 })
    expect(await state(alice, next, 'm.room.create')).not.toHaveProperty('additional_creators')
  })

  it('of the old room stay as they were sent, in memory too', async () => {
    const room = await alice.createRoom({ room_version: '10' })
    const { event_id } = await eventOf(alice, room, 'm.room.power_levels')
    const read = async () => {
      const { unsigned: _, ...event } = await alice.call('GET', inRoom(room, `/event/${enc(event_id)}`))
      return event
    }
    const before = await read()
    await upgrade(alice, room, { new_version: '11' })
    expect(await read()).toEqual(before)
    expect(before.content).toMatchObject({ events_default: 0, users: { [alice.userId]: 100 } })
  })

  it('are those from before the first upgrade when a room is upgraded again', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', room_version: '9' })
    await bob.join(room)
    const first = await upgrade(alice, room, { new_version: '10' })
    const second = await upgrade(alice, room, { new_version: '11' })
    const third = await upgrade(alice, room, { new_version: '9' })
    expect(new Set([first, second, third]).size).toBe(3)
    for (const next of [first, second, third]) {
      expect(await state(alice, next, 'm.room.power_levels')).toMatchObject({ events_default: 0, invite: 0 })
      await bob.join(next)
      await bob.say(next, 'hello')
    }
    expect((await state(alice, room, 'm.room.tombstone')).replacement_room).toBe(third)
  })
})

describe('a repeated upgrade', () => {
  it('gives the same room, at once or later, to all who may', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    const answers = await Promise.all(Array.from({ length: 6 }, () => upgrade(alice, room)))
    expect(new Set(answers).size).toBe(1)
    expect(await upgrade(alice, room)).toBe(answers[0])
    await house.restart()
    expect(await upgrade(alice, room)).toBe(answers[0])
    const tombstones = (await alice.call('GET', inRoom(room, '/messages?dir=b&limit=50'))).chunk
    expect(tombstones.filter(({ type }: Json) => type === 'm.room.tombstone')).toHaveLength(1)
    expect(await ask(bob, room, { new_version: '12' })).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
  })

  it('makes another room once the first one is empty', async () => {
    const room = await alice.createRoom()
    const next = await upgrade(alice, room)
    await alice.leave(next)
    expect(await upgrade(alice, room)).not.toBe(next)
  })
})

describe('an upgrade that cannot be', () => {
  const roomsOf = async (person: Person) => (await person.call('GET', '/joined_rooms')).joined_rooms.length

  it.each([
    [400, 'M_UNSUPPORTED_ROOM_VERSION', { new_version: '999' }],
    [400, 'M_UNSUPPORTED_ROOM_VERSION', { new_version: '' }],
    [400, 'M_MISSING_PARAM', {}],
    [400, 'M_INVALID_PARAM', { new_version: '12', additional_creators: ['nobody'] }],
    [
      400,
      'M_INVALID_PARAM',
      {
        new_version: '12',
        additional_creators: Array.from({ length: MAX_ADDITIONAL_CREATORS + 1 }, (_, i) => `@u${i}:localhost`),
      },
    ],
    [
      413,
      'M_TOO_LARGE',
      {
        new_version: '12',
        additional_creators: Array.from(
          { length: MAX_ADDITIONAL_CREATORS },
          (_, i) => `@${'\u0001'.repeat(200)}${i}:localhost`,
        ),
      },
    ],
  ])('is refused with %s %s before anything is made', async (status, errcode, body) => {
    const room = await alice.createRoom()
    const before = await roomsOf(alice)
    const answer = await ask(alice, room, body)
    expect([answer.status, answer.body.errcode]).toEqual([status, errcode])
    expect(await roomsOf(alice)).toBe(before)
    expect(await eventOf(alice, room, 'm.room.tombstone')).toBeUndefined()
    expect(await house.server.database.db.query('SELECT FROM room_upgrade WHERE NOT is_done')).toEqual([])
  })

  it('is refused to who lacks the power, is not in the room, or knows no such room', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    const forbidden = { status: 403, body: { errcode: 'M_FORBIDDEN' } }
    expect(await ask(carol, room, { new_version: '12' })).toMatchObject(forbidden)
    await carol.join(room)
    expect(await ask(carol, room, { new_version: '12' })).toMatchObject(forbidden)
    expect(await ask(carol, '!none:localhost', { new_version: '12' })).toMatchObject(forbidden)
    expect(await eventOf(alice, room, 'm.room.tombstone')).toBeUndefined()
  })
})

describe('an interrupted upgrade', () => {
  const sql = (text: string, values: readonly (string | number)[] = []) =>
    house.server.database.db.tx((tx) => tx.query<Json>(text, values))

  it('is completed by the same request, in the room that had begun', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', room_alias_name: 'broken', name: 'Broken' })
    await alice.call('POST', inRoom(room, '/ban'), { user_id: carol.userId })
    await sql(`CREATE FUNCTION stumble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'stumbled'; END $$`)
    await sql('CREATE TRIGGER stumble BEFORE UPDATE ON room_alias FOR EACH ROW EXECUTE FUNCTION stumble()')
    expect((await ask(alice, room, { new_version: '12' })).status).toBe(500)
    const begun = (await state(alice, room, 'm.room.tombstone')).replacement_room
    expect((await bob.ask('POST', inRoom(begun, '/join'), {})).status).toBe(403)
    await sql('DROP TRIGGER stumble ON room_alias')
    expect(await upgrade(alice, room)).toBe(begun)
    expect(await state(alice, begun, 'm.room.name')).toEqual({ name: 'Broken' })
    expect((await alice.call('GET', inRoom(begun, '/members?membership=ban'))).chunk).toHaveLength(1)
    await bob.join(begun)
  })

  it('goes on when its client has given up, and the next request finds the same room', async () => {
    const room = await alice.createRoom({ room_alias_name: 'impatient' })
    const unlock = await lockAlias('#impatient:localhost')
    const { token } = alice
    const patience = new AbortController()
    const call = { token, body: { new_version: '12' }, signal: patience.signal }
    const cut = house.api.request('POST', inRoom(room, '/upgrade'), call)
    const tombstone = await waitUntil('the tombstone', () => eventOf(alice, room, 'm.room.tombstone'))
    patience.abort()
    await expect(cut).rejects.toThrow()
    await unlock()
    expect(await upgrade(alice, room)).toBe(tombstone.content.replacement_room)
    const rows = await sql('SELECT FROM room_upgrade u JOIN room USING (room_nid) WHERE room_id = $1', [room])
    expect(rows).toHaveLength(1)
  })

  it('lets who follows its tombstone at once wait until the new room is ready', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', name: 'Followed', room_alias_name: 'followed' })
    await bob.join(room)
    // A lock of another transaction holds up what comes between the tombstone and the end.
    const unlock = await lockAlias('#followed:localhost')
    const upgraded = upgrade(alice, room)
    const tombstone = await waitUntil('the tombstone', () => eventOf(bob, room, 'm.room.tombstone'))
    let isJoined = false
    const joining = bob.join(tombstone.content.replacement_room).then(() => {
      isJoined = true
    })
    await bob.say(await bob.createRoom(), 'something else meanwhile')
    expect(isJoined).toBe(false)
    await unlock()
    await joining
    expect(await state(bob, await upgraded, 'm.room.name')).toEqual({ name: 'Followed' })
  })

  /** What a process leaves that dies after it has decided what to make. */
  async function leaveBehind(room: string, id: string): Promise<void> {
    const creation = { room_version: '11', predecessor: { room_id: room } }
    await sql(
      `INSERT INTO room_upgrade (new_room_nid, new_room_id, room_nid, room_version, user_id, creation, created_ts)
       SELECT nextval('room_nid_seq'), $2, room_nid, '11', $3, $4, 1 FROM room WHERE room_id = $1`,
      [room, id, alice.userId, JSON.stringify(creation)],
    )
  }

  it('is completed after a crash that came after the tombstone', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', name: 'Crashed' })
    await leaveBehind(room, '!crashed:localhost')
    const event_id = await alice.setState(room, 'm.room.tombstone', {
      body: 'x',
      replacement_room: '!crashed:localhost',
    })
    await house.restart()
    await waitUntil('the new room', async () => {
      const [row] = await sql("SELECT is_done FROM room_upgrade WHERE new_room_id = '!crashed:localhost'")
      return row?.is_done === true
    })
    const create = await state(alice, '!crashed:localhost', 'm.room.create')
    expect(create.predecessor).toEqual({ room_id: room, event_id })
    expect(await state(alice, '!crashed:localhost', 'm.room.name')).toEqual({ name: 'Crashed' })
  })

  it('never was after a crash that came before the tombstone', async () => {
    const room = await alice.createRoom()
    await leaveBehind(room, '!unborn:localhost')
    await house.restart()
    await waitUntil('its end', async () => {
      return (await sql("SELECT FROM room_upgrade WHERE new_room_id = '!unborn:localhost'")).length === 0
    })
    expect(await eventOf(alice, room, 'm.room.tombstone')).toBeUndefined()
  })
})

describe('what a user set for a room', () => {
  const muteRule = async (by: Person, room: string) => {
    await by.call('PUT', `/pushrules/global/room/${enc(room)}`, { actions: [] })
    const conditions = [{ kind: 'event_match', key: 'room_id', pattern: room }]
    await by.call('PUT', `/pushrules/global/override/${enc(room)}`, { actions: [], conditions })
  }
  const rulesOf = async (by: Person): Promise<Json> => (await by.call('GET', '/pushrules/')).global
  const own = (list: Json[]) => list.filter((rule) => !rule.default).map((rule) => rule.rule_id)
  const direct = (by: Person): Promise<Json> => by.call('GET', `/user/${by.userId}/account_data/m.direct`)

  it('is copied to the new room: tags, push rules and direct chats', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    for (const person of [alice, bob]) {
      await tag(person, room)
      await muteRule(person, room)
      await person.call('PUT', `/user/${person.userId}/account_data/m.direct`, {
        '@x:y': ['!other:y', room],
        '@z:y': [],
      })
    }
    const next = await upgrade(alice, room)
    await bob.join(next)
    for (const person of [alice, bob]) {
      expect(await tagsOf(person, next)).toEqual(FAVOURITE)
      expect(await tagsOf(person, room)).toEqual(FAVOURITE)
      const rules = await rulesOf(person)
      expect(own(rules.room)).toEqual(expect.arrayContaining([room, next]))
      const copy = rules.override.find((rule: Json) => rule.rule_id === next)
      expect(copy.conditions).toEqual([{ kind: 'event_match', key: 'room_id', pattern: next }])
      expect(await direct(person)).toEqual({ '@x:y': ['!other:y', room, next], '@z:y': [] })
    }
  })

  it('does not displace what the user has set for the new room', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    await tag(bob, room)
    const next = await upgrade(alice, room)
    const mine = { tags: { 'u.mine': {} } }
    await tag(bob, next, mine)
    await bob.join(next)
    expect(await tagsOf(bob, next)).toEqual(mine)
  })

  it('is not copied to a room that falsely claims to replace another', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    await tag(bob, room)
    await muteRule(bob, room)
    const creation_content = { predecessor: { room_id: room, event_id: '$x' } }
    const fake = await carol.createRoom({ preset: 'public_chat', creation_content })
    await bob.join(fake)
    expect(await tagsOf(bob, fake)).toBeUndefined()
    const genuine = await upgrade(alice, room)
    await bob.leave(fake)
    await bob.join(fake)
    expect(await tagsOf(bob, fake)).toBeUndefined()
    await bob.join(genuine)
    expect(await tagsOf(bob, genuine)).toEqual(FAVOURITE)
    expect(own((await rulesOf(bob)).room)).not.toContain(fake)
  })

  it('is copied when a room is replaced by hand', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    for (const person of [alice, bob]) await tag(person, room)
    const creation_content = { predecessor: { room_id: room, event_id: '$x' } }
    const next = await alice.createRoom({ preset: 'public_chat', creation_content })
    await alice.setState(room, 'm.room.tombstone', { body: 'moved', replacement_room: next })
    await waitUntil('the tags', async () => (await tagsOf(alice, next)) !== undefined)
    await bob.join(next)
    expect(await tagsOf(bob, next)).toEqual(FAVOURITE)
  })
})

async function tagsOf(by: Person, room: string): Promise<Json> {
  const { status, body } = await by.ask('GET', `/user/${by.userId}/rooms/${enc(room)}/account_data/m.tag`)
  return status === 200 ? body : undefined
}
