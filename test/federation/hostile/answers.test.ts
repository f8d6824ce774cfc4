import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Pdu } from '../../../src/core/event/format.ts'
import type { UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { signEvent } from '../../../src/core/signing/event-hash.ts'
import { signJson } from '../../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import type { Forge } from '../../rooms/forge.ts'
import { type Account, createRoom, type Json } from '../../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { type WatchedWrites, watchWrites } from '../../support/watched-writes.ts'
import { type HostilePeer, openHostilePeer } from './peer.ts'

/** A server that is asked for something, and whose answer is not what an honest server would say. */

const VERSION = '11'
const enc = encodeURIComponent
const stranger = signingKeyFromSeed('ed25519:sim', randomBytes(32))

let street: Neighbourhood
let home: Neighbour
let peer: HostilePeer
let alice: Account
let writes: WatchedWrites
let forge: Forge

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  peer = await openHostilePeer(street.authority)
  alice = await home.person('alice')
  writes = await watchWrites(home.server)
  forge = peer.open(VERSION, 'lair')
})
afterAll(async () => {
  await writes?.close()
  await peer?.close()
  await street?.close()
})
beforeEach(async () => void (await writes.read()))
afterEach(() => peer.repent())

const post = (path: string, body: object = {}) => home.api.request('POST', path, { token: alice.token, body })
const join = (room = forge.roomId) => post(`/join/${enc(room)}?via=${peer.name}`)

/** Keys of servers are kept whatever they say else. */
const stored = async () => (await writes.read()).filter((one) => !one.startsWith('server_key'))
const rooms = async () => (await home.api.call('GET', '/joined_rooms', { token: alice.token })).joined_rooms

type Twist = (honest: Json) => Json
const withEvent =
  (change: (event: Json) => JsonObject | null): Twist =>
  (honest) => ({
    ...honest,
    event: change(honest.event),
  })
const withContent = (content: Json): Twist => withEvent((event) => ({ ...event, content }))

/** Templates that no honest server would propose for what was asked. */
const templatesFor = (membership: string): readonly (readonly [string, Twist])[] => [
  ['no object', () => []],
  ['nothing', () => null],
  ['no event', () => ({ room_version: VERSION })],
  ['another type', withEvent((event) => ({ ...event, type: 'm.room.power_levels' }))],
  ['another sender', withEvent((event) => ({ ...event, sender: '@other:elsewhere.test' }))],
  [
    'another user of ours',
    withEvent((event) => ({ ...event, sender: `@bob:${home.name}`, state_key: `@bob:${home.name}` })),
  ],
  ['another state key', withEvent((event) => ({ ...event, state_key: peer.eve }))],
  ['no state key', withEvent(({ state_key: _, ...event }) => event)],
  ['another room', withEvent((event) => ({ ...event, room_id: `!other:${peer.name}` }))],
  ['another membership', withContent({ membership: membership === 'join' ? 'ban' : 'join' })],
  [
    'an invitation of somebody',
    withEvent((event) => ({ ...event, state_key: peer.eve, content: { membership: 'invite' } })),
  ],
  ['content that is text', withContent('join')],
  ['a place in no room', withEvent(({ prev_events: _, ...event }) => event)],
  ['prev_events of another version', withEvent((event) => ({ ...event, prev_events: [['$a:b', { sha256: 'c' }]] }))],
  ['more auth_events than there may be', withEvent((event) => ({ ...event, auth_events: Array(11).fill('$a') }))],
  ['a depth below nothing', withEvent((event) => ({ ...event, depth: -1 }))],
  ['a version that nobody knows', (honest) => ({ ...honest, room_version: 'evil' })],
]

describe('joining: a template (make_join)', () => {
  it.each(templatesFor('join'))('of %s is not signed', async (_, twist) => {
    peer.lie('make_join', twist)
    expect((await join()).status).toBeGreaterThanOrEqual(400)
    expect(peer.signedBy(home.name)).toEqual([])
    expect([await stored(), await rooms()]).toEqual([[], []])
  })

  it('gives nothing but its place to what is signed', async () => {
    const more = { displayname: 'Mallory', is_admin: true, third_party_invite: {}, 'm.relates_to': {} }
    peer.lie(
      'make_join',
      withEvent((event) => ({ ...event, redacts: '$x', unsigned: {}, content: { ...event.content, ...more } })),
    )
    peer.lie('send_join', () => null)
    await join()
    const [signed, ...others] = peer.signedBy(home.name) as [Pdu]
    expect(others.length).toBeLessThanOrEqual(1)
    expect(signed.content).toEqual({ membership: 'join' })
    expect([signed.sender, signed.state_key, signed.type]).toEqual([alice.userId, alice.userId, 'm.room.member'])
    expect(Object.keys(signed)).not.toContain('redacts')
  })
})

describe('joining: what is told of the room (send_join)', () => {
  const without =
    (type: string): Twist =>
    (honest) => ({ ...honest, state: honest.state.filter((one: Json) => one.type !== type) })
  const altered =
    (change: (event: Json) => Json): Twist =>
    (honest) => ({
      ...honest,
      state: honest.state.map(change),
      auth_chain: honest.auth_chain.map(change),
    })
  const resigned = (event: Json, change: Json) =>
    signEvent(roomVersion(VERSION)!, { ...event, ...change, signatures: {} }, peer.name, stranger)

  it.each<[string, Twist]>([
    ['nothing', () => null],
    ['no state', (honest) => ({ ...honest, state: [] })],
    ['state that is text', (honest) => ({ ...honest, state: 'all of it', auth_chain: 'trust me' })],
    ['state without the create event', without('m.room.create')],
    ['events that nobody signed', altered(({ signatures: _, ...event }) => event)],
    ['events signed with a key that is not its own', altered((event) => resigned(event, {}))],
    ['events of another room', altered((event) => ({ ...event, room_id: '!other:elsewhere.test' }))],
    [
      'an auth chain that is cut',
      (honest) => ({
        ...honest,
        auth_chain: [],
        state: honest.state.filter((one: Json) => one.type !== 'm.room.join_rules' && one.type !== 'm.room.create'),
      }),
    ],
    [
      'a room that its rules shut us out of',
      (honest) => ({ ...honest, state: honest.state.filter((one: Json) => one.type !== 'm.room.join_rules') }),
    ],
  ])('of %s: the room is not joined', async (_, twist) => {
    peer.lie('send_join', twist)
    expect((await join()).status).toBeGreaterThanOrEqual(400)
    expect(await rooms()).toEqual([])
    expect(await stored()).toEqual([])
    for (const { sender, content } of peer.signedBy(home.name)) {
      expect([sender, content.membership]).toEqual([alice.userId, 'join'])
    }
  })
})

it('joining through the same server, once it tells the truth', async () => {
  expect(await join()).toEqual({ status: 200, body: { room_id: forge.roomId } })
  expect(await rooms()).toEqual([forge.roomId])
})

describe('leaving: a template (make_leave)', () => {
  let count = 0
  let lair: Forge

  async function invited() {
    lair = peer.open(VERSION, `invites${count++}`)
    const id = lair.member(alice.userId as UserId, 'invite', { sender: peer.eve })
    const event = JSON.parse(lair.texts.get(id)!)
    const uri = `/_matrix/federation/v2/invite/${enc(lair.roomId)}/${enc(id)}`
    const body = { room_version: VERSION, event, invite_room_state: [] }
    const answer = await peer.ask({ name: home.name, url: home.server.baseUrl }, 'PUT', uri, { body })
    expect(answer.status).toBe(200)
  }

  it.each(templatesFor('leave'))('of %s is not signed, and the invitation is gone all the same', async (_, twist) => {
    await invited()
    peer.lie('make_leave', twist)
    await post(`/rooms/${enc(lair.roomId)}/leave`)
    expect(peer.signedBy(home.name)).toEqual([])
    const { rooms: shown } = await home.api.call('GET', '/sync?timeout=0', { token: alice.token })
    expect(shown?.invite?.[lair.roomId]).toBe(undefined)
  })
})

describe('inviting: the event that comes back (invite)', () => {
  let room: string
  beforeAll(async () => {
    room = await createRoom(home.api, alice.token, { preset: 'private_chat', room_version: VERSION })
  })

  const sign = (event: Json, key = peer.key, name = peer.name) => signEvent(roomVersion(VERSION)!, event, name, key)
  it.each<[string, (event: Json) => Json]>([
    ['no object', () => []],
    ['nothing', () => null],
    ['ours, without a signature of its own', (event) => event],
    ['signed with a key that is not its own', (event) => sign(event, stranger)],
    ['signed in the name of another server', (event) => sign(event, peer.key, 'elsewhere.test' as never)],
    ['for another room', (event) => sign({ ...event, room_id: '!other:elsewhere.test' })],
    ['of somebody else', (event) => sign({ ...event, state_key: `@other:${peer.name}` })],
    ['by somebody else', (event) => sign({ ...event, sender: peer.eve })],
    ['with another membership', (event) => sign({ ...event, content: { membership: 'join' } })],
    ['with other references', (event) => sign({ ...event, prev_events: [], auth_events: [] })],
  ])('%s: nobody is invited', async (_, change) => {
    let asked: Json
    peer.lie('invite', (_honest, { body }) => {
      asked = JSON.parse(body).event
      return { event: change(asked) }
    })
    const { status } = await post(`/rooms/${enc(room)}/invite`, { user_id: peer.eve })
    expect(status).toBe(502)
    expect((await stored()).filter((one) => !one.startsWith('matrix_user'))).toEqual([])
    expect([asked.sender, asked.state_key, asked.content.membership]).toEqual([alice.userId, peer.eve, 'invite'])
  })
})

describe('what a peer answers is told to nobody as our own failure', () => {
  it.each([401, 403, 418, 429, 500, 503])('%s M_UNKNOWN_TOKEN', async (status) => {
    peer.answer('make_join', (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end('{"errcode":"M_UNKNOWN_TOKEN","error":"log out now","soft_logout":false}')
    })
    const { status: told, body } = await join()
    expect(told).not.toBe(401)
    expect(body.errcode).not.toBe('M_UNKNOWN_TOKEN')
    expect(body).not.toHaveProperty('soft_logout')
  })
})

describe('keys: a server lies about its own', () => {
  /** A peer of its own for each: what was told of keys is remembered. */
  async function asksWith(twist: Twist, by: { key?: HostilePeer['key'] } = {}) {
    const liar = await openHostilePeer(street.authority)
    try {
      const answer = {
        server_name: liar.name,
        verify_keys: { [liar.key.keyId]: { key: liar.key.publicKey } },
        old_verify_keys: {},
        valid_until_ts: Date.now() + 3_600_000,
      }
      liar.lie('keys', () => signJson(twist(answer), liar.name, liar.key))
      const uri = `/_matrix/federation/v1/query/profile?user_id=${enc(alice.userId)}`
      return (await liar.ask({ name: home.name, url: home.server.baseUrl }, 'GET', uri, by)).status
    } finally {
      await liar.close()
    }
  }

  it('and an honest one is heard', async () => {
    expect(await asksWith((honest) => honest)).toBe(200)
    expect(await asksWith((honest) => ({ ...honest, valid_until_ts: Number.MAX_SAFE_INTEGER }))).toBe(200)
    const [row] = await home.server.database.db.query<{ longest: number }>(
      'SELECT max(valid_until) AS longest FROM server_key',
    )
    expect(row!.longest).toBeLessThan(Date.now() + 7 * 24 * 3_600_000 + 1)
  })

  it.each<[string, Twist]>([
    ['keys that ran out long ago', (honest) => ({ ...honest, valid_until_ts: 1 })],
    ['keys valid until a text', (honest) => ({ ...honest, valid_until_ts: 'for ever' })],
    ['keys valid until before time', (honest) => ({ ...honest, valid_until_ts: -1 })],
    ['the name of another server', (honest) => ({ ...honest, server_name: 'elsewhere.test' })],
    ['the name of ours', (honest) => ({ ...honest, server_name: home.name })],
    ['no name', ({ server_name: _, ...honest }) => honest],
    [
      'its key among the old ones alone',
      ({ verify_keys, ...honest }) => ({
        ...honest,
        verify_keys: {},
        old_verify_keys: { 'ed25519:sim': { ...verify_keys['ed25519:sim'], expired_ts: Date.now() - 1000 } },
      }),
    ],
    ['a list of keys', (honest) => ({ ...honest, verify_keys: Object.values(honest.verify_keys) })],
    [
      'a key of another kind',
      (honest) => ({ ...honest, verify_keys: { 'rsa:sim': honest.verify_keys['ed25519:sim'] } }),
    ],
    ['a key that is too short', (honest) => ({ ...honest, verify_keys: { 'ed25519:sim': { key: 'AAAA' } } })],
  ])('%s: nothing that it signs is believed', async (_, twist) => {
    expect(await asksWith(twist)).toBe(401)
  })

  it('an old key signs no request, whatever time it names', async () => {
    const old = signingKeyFromSeed('ed25519:old', randomBytes(32))
    const named = (expired_ts: number) => (honest: Json) => ({
      ...honest,
      old_verify_keys: { [old.keyId]: { key: old.publicKey, expired_ts } },
    })
    expect(await asksWith(named(Date.now() - 1000), { key: old })).toBe(401)
    expect(await asksWith(named(Date.now() + 3_600_000), { key: old })).toBe(401)
  })
})
