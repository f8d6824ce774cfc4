import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type House, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person
let room: string

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  room = await alice.createRoom({ preset: 'public_chat' })
})
afterAll(() => house.close())

const PREFIXES = ['/_matrix/client/v3', '/_proto/client/r0']
const ME = '@alice:localhost'
const stateKeyOf = (type: string) => (type === 'm.room.member' ? ME : type.startsWith('m.space') ? '!other' : '')

const put = (prefix: string, type: string, content: Json) =>
  house.api.request(
    'PUT',
    `${prefix}/rooms/${encodeURIComponent(room)}/state/${type}/${encodeURIComponent(stateKeyOf(type))}`,
    { token: alice.token, body: content },
  )

/** Of each kind: what lacks a field, or has it as something else. */
const MALFORMED: readonly [type: string, content: Json][] = [
  ['m.room.join_rules', {}],
  ['m.room.join_rules', { join_rule: 5 }],
  ['m.room.join_rules', { join_rule: null }],
  ['m.room.join_rules', { join_rule: 'restricted', allow: 'all' }],
  ['m.room.join_rules', { join_rule: 'restricted', allow: [{ room_id: '!x' }] }],
  ['m.room.power_levels', { events: 5 }],
  ['m.room.power_levels', { events: { 'm.room.name': 'high' } }],
  ['m.room.power_levels', { users: [] }],
  ['m.room.power_levels', { users: { [ME]: '100' } }],
  ['m.room.power_levels', { ban: 'fifty', users: { [ME]: 100 } }],
  ['m.room.power_levels', { notifications: { room: true }, users: { [ME]: 100 } }],
  ['m.room.member', {}],
  ['m.room.member', { membership: 'inside' }],
  ['m.room.member', { membership: 'join', displayname: 7 }],
  ['m.room.member', { membership: 'join', avatar_url: {} }],
  ['m.room.member', { membership: 'join', is_direct: 'yes' }],
  ['m.room.member', { membership: 'join', third_party_invite: { display_name: 'x' } }],
  ['m.room.canonical_alias', { alias: 5 }],
  ['m.room.canonical_alias', { alt_aliases: '#a:b' }],
  ['m.room.canonical_alias', { alt_aliases: [5] }],
  ['m.room.history_visibility', {}],
  ['m.room.history_visibility', { history_visibility: true }],
  ['m.room.guest_access', { guest_access: 1 }],
  ['m.room.encryption', {}],
  ['m.room.encryption', { algorithm: 1 }],
  ['m.room.encryption', { algorithm: 'm.megolm.v1.aes-sha2', rotation_period_ms: '1' }],
  ['m.room.name', { name: 5 }],
  ['m.room.name', { title: 'x' }],
  ['m.room.topic', { topic: [] }],
  ['m.room.avatar', { url: 5 }],
  ['m.room.pinned_events', { pinned: '$x' }],
  ['m.room.server_acl', { allow: '*' }],
  ['m.room.tombstone', { body: 'gone' }],
  ['m.space.child', { via: 'example.org' }],
]

/** What clients do set, also where it is less than the whole. */
const SOUND: readonly [type: string, content: Json][] = [
  ['m.room.join_rules', { join_rule: 'invite', 'org.example.more': [1] }],
  ['m.room.power_levels', { users: { [ME]: 100 }, events: { 'm.room.name': 50 }, 'org.example.note': 'x' }],
  ['m.room.member', { membership: 'join', displayname: null, avatar_url: null, 'org.example.more': {} }],
  ['m.room.canonical_alias', { alias: null }],
  ['m.room.canonical_alias', {}],
  ['m.room.name', {}],
  ['m.room.topic', {}],
  ['m.room.avatar', {}],
  ['m.room.third_party_invite', {}],
  ['m.space.child', {}],
  ['m.policy.rule.user', {}],
  ['m.room.pinned_events', { pinned: [] }],
  ['org.example.anything', { join_rule: 5 }],
]

describe.each(PREFIXES)('state set by %s', (prefix) => {
  test.each(MALFORMED)('B11: %s with %j is refused', async (type, content) => {
    const answer = await put(prefix, type, content)
    const errcode = type === 'm.room.canonical_alias' ? 'M_INVALID_PARAM' : 'M_BAD_JSON'
    expect(answer).toMatchObject({ status: 400, body: { errcode, error: expect.stringContaining(type) } })
  })

  test.each(SOUND)('B11: %s with %j is set, and unknown fields stay', async (type, content) => {
    const { status, body } = await put(prefix, type, content)
    expect([status, body.error]).toEqual([200, undefined])
    const path = `${prefix}/rooms/${encodeURIComponent(room)}/state/${type}/${encodeURIComponent(stateKeyOf(type))}`
    expect(await house.api.call('GET', path, { token: alice.token })).toEqual(content)
  })

  test('B11: the first state of a room is checked too', async () => {
    const at = `${prefix}/createRoom`
    for (const body of [
      { initial_state: [{ type: 'm.room.join_rules', content: {} }] },
      { power_level_content_override: { events: 5 } },
    ]) {
      const answer = await house.api.request('POST', at, { token: alice.token, body })
      expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_BAD_JSON' } })
    }
  })
})
