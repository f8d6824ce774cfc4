import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Pdu } from '../../../src/core/event/format.ts'
import type { UserId } from '../../../src/core/ids.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import type { Forge } from '../../rooms/forge.ts'
import { type Account, createRoom, type Json } from '../../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { type WatchedWrites, watchWrites } from '../../support/watched-writes.ts'
import { LIES, type Operation } from './lies.ts'
import { type HostilePeer, type HostileServers, startHostileServers } from './process.ts'

/** A server that is asked for something, and whose answer is not what an honest server would say. */

const VERSION = '11'
const enc = encodeURIComponent

let street: Neighbourhood
let home: Neighbour
let hostile: HostileServers
let peer: HostilePeer
let alice: Account
let writes: WatchedWrites
let forge: Forge

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  hostile = startHostileServers(street.authority)
  peer = await hostile.open()
  alice = await home.person('alice')
  writes = await watchWrites(home.server)
  forge = await peer.open(VERSION, 'lair')
})
afterAll(async () => {
  await writes?.close()
  await hostile?.close()
  await street?.close()
})
beforeEach(async () => void (await writes.read()))
afterEach(() => peer.repent())

const post = (path: string, body: object = {}) => home.api.request('POST', path, { token: alice.token, body })
const join = (room = forge.roomId) => post(`/join/${enc(room)}?via=${peer.name}`)

/** Keys of servers are kept whatever they say else. */
const stored = async () => (await writes.read()).filter((one) => !one.startsWith('server_key'))
const rooms = async () => (await home.api.call('GET', '/joined_rooms', { token: alice.token })).joined_rooms

const liesTo = (operation: Operation) =>
  Object.keys(LIES[operation]).filter((lie) => lie !== 'more' && lie !== 'nobody')

describe('joining: a template (make_join)', () => {
  it.each(liesTo('make_join'))('of %s is not signed', async (lie) => {
    await peer.lie('make_join', lie)
    expect((await join()).status).toBeGreaterThanOrEqual(400)
    expect(await peer.signedBy(home.name)).toEqual([])
    expect([await stored(), await rooms()]).toEqual([[], []])
  })

  it('gives nothing but its place to what is signed', async () => {
    await peer.lie('make_join', 'more')
    await peer.lie('send_join', 'nothing')
    await join()
    const [signed, ...others] = (await peer.signedBy(home.name)) as [Pdu]
    expect(others.length).toBeLessThanOrEqual(1)
    expect(signed.content).toEqual({ membership: 'join' })
    expect([signed.sender, signed.state_key, signed.type]).toEqual([alice.userId, alice.userId, 'm.room.member'])
    expect(Object.keys(signed)).not.toContain('redacts')
  })
})

describe('joining: what is told of the room (send_join)', () => {
  it.each(liesTo('send_join'))('of %s: the room is not joined', async (lie) => {
    await peer.lie('send_join', lie)
    expect((await join()).status).toBeGreaterThanOrEqual(400)
    expect(await rooms()).toEqual([])
    expect(await stored()).toEqual([])
    for (const { sender, content } of await peer.signedBy(home.name)) {
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
    lair = await peer.open(VERSION, `invites${count++}`)
    const id = lair.member(alice.userId as UserId, 'invite', { sender: peer.eve })
    const event = JSON.parse(lair.texts.get(id)!)
    const uri = `/_matrix/federation/v2/invite/${enc(lair.roomId)}/${enc(id)}`
    const body = { room_version: VERSION, event, invite_room_state: [] }
    const answer = await peer.ask({ name: home.name, url: home.server.baseUrl }, 'PUT', uri, { body })
    expect(answer.status).toBe(200)
  }

  it.each(liesTo('make_leave'))('of %s is not signed, and the invitation is gone all the same', async (lie) => {
    await invited()
    await peer.lie('make_leave', lie)
    await post(`/rooms/${enc(lair.roomId)}/leave`)
    expect(await peer.signedBy(home.name)).toEqual([])
    const { rooms: shown } = await home.api.call('GET', '/sync?timeout=0', { token: alice.token })
    expect(shown?.invite?.[lair.roomId]).toBe(undefined)
  })
})

describe('knocking: a template (make_knock)', () => {
  let lair: Forge
  beforeAll(async () => {
    lair = await peer.open(VERSION, 'closed', 'knock')
  })
  const knock = () => post(`/knock/${enc(lair.roomId)}?via=${peer.name}`)

  it.each(liesTo('make_knock'))('of %s is not signed', async (lie) => {
    await peer.lie('make_knock', lie)
    expect((await knock()).status).toBeGreaterThanOrEqual(400)
    expect(await peer.signedBy(home.name)).toEqual([])
    expect(await stored()).toEqual([])
  })

  it('gives nothing but its place to what is signed', async () => {
    await peer.lie('make_knock', 'more')
    expect((await knock()).status).toBe(200)
    const [signed] = (await peer.signedBy(home.name)) as [Pdu]
    expect([signed.sender, signed.state_key, signed.content]).toEqual([
      alice.userId,
      alice.userId,
      { membership: 'knock' },
    ])
    expect(Object.keys(signed)).not.toContain('redacts')
  })
})

describe.each([
  ['invite', VERSION],
  ['invite_v1', '1'],
] as const)('inviting: the event that comes back (%s)', (operation, version) => {
  let room: string
  beforeAll(async () => {
    room = await createRoom(home.api, alice.token, { preset: 'private_chat', room_version: version })
  })
  beforeEach(() => (operation === 'invite_v1' ? peer.lie('invite', 'nobody') : undefined))
  const invite = () => post(`/rooms/${enc(room)}/invite`, { user_id: peer.eve })

  it.each(liesTo(operation))('%s: nobody is invited', async (lie) => {
    await peer.lie(operation, lie)
    expect((await invite()).status).toBe(502)
    expect((await stored()).filter((one) => !one.startsWith('matrix_user'))).toEqual([])
    const asked = (await peer.signedBy(home.name)) as [Pdu]
    expect(asked.length).toBe(operation === 'invite' ? 1 : 2)
    for (const { sender, state_key, content } of asked) {
      expect([sender, state_key, content.membership]).toEqual([alice.userId, peer.eve, 'invite'])
    }
  })

  it('and the one that is as it should be invites', async () => {
    expect((await invite()).status).toBe(200)
  })
})

describe('what a peer answers is told to nobody as our own failure', () => {
  it.each([401, 403, 418, 429, 500, 503])('%s M_UNKNOWN_TOKEN', async (status) => {
    await peer.lie('make_join', 'that logs us out', status)
    const { status: joined, body } = await join()
    expect(joined).not.toBe(401)
    expect(body.errcode).not.toBe('M_UNKNOWN_TOKEN')
    expect(body).not.toHaveProperty('soft_logout')
  })
})

it.each<[string, (room: string) => readonly [string, string, object?]]>([
  ['joining', (room) => ['POST', `/join/${enc(room)}?via=${peer.name}`, {}]],
  ['joining by an alias', () => ['POST', `/join/${enc(`#lair:${peer.name}`)}`, {}]],
  ['knocking', (room) => ['POST', `/knock/${enc(room)}?via=${peer.name}`, {}]],
  ['a profile', () => ['GET', `/profile/${enc(peer.eve)}`]],
  ['an alias', () => ['GET', `/directory/room/${enc(`#lair:${peer.name}`)}`]],
  ['public rooms', () => ['GET', `/publicRooms?server=${peer.name}`]],
  ['public rooms, looked through', () => ['POST', `/publicRooms?server=${peer.name}`, { filter: {} }]],
  ['keys of devices', () => ['POST', '/keys/query', { device_keys: { [peer.eve]: [] } }]],
  ['keys for once', () => ['POST', '/keys/claim', { one_time_keys: { [peer.eve]: { X: 'signed_curve25519' } } }]],
  ['a file', () => ['GET', `/_matrix/client/v1/media/download/${peer.name}/file`]],
  ['a picture', () => ['GET', `/_matrix/client/v1/media/thumbnail/${peer.name}/file?width=9&height=9`]],
  ['what a room is', (room) => ['GET', `/_matrix/client/v1/room_summary/${enc(room)}?via=${peer.name}`]],
  ['what a space holds', (room) => ['GET', `/_matrix/client/v1/rooms/${enc(room)}/hierarchy`]],
])('another server that does not know our token ends no session of ours: %s (73)', async (_, request) => {
  await peer.lie('*', 'that logs us out', 401)
  const [method, path, body] = request(`!lair:${peer.name}`)
  const answer = await home.api.request(method, path, { token: alice.token, ...(body && { body }) })
  expect(answer.status).not.toBe(401)
  expect(JSON.stringify(answer.body)).not.toMatch(/M_UNKNOWN_TOKEN|soft_logout/)
  await home.api.call('GET', '/account/whoami', { token: alice.token })
})

describe('keys: a server lies about its own', () => {
  /** A peer of its own for each: what was told of keys is remembered. */
  async function asksWith(lie: string, detail?: Json, by: { key?: HostilePeer['key'] } = {}) {
    const liar = await hostile.open()
    await liar.lie('keys', lie, detail)
    const uri = `/_matrix/federation/v1/query/profile?user_id=${enc(alice.userId)}`
    return (await liar.ask({ name: home.name, url: home.server.baseUrl }, 'GET', uri, by)).status
  }

  const believed = ['nothing but the truth', 'keys that are valid for ever']
  it('and an honest one is heard', async () => {
    for (const lie of believed) expect(await asksWith(lie)).toBe(200)
    const [row] = await home.server.database.db.query<{ longest: number }>(
      'SELECT max(valid_until) AS longest FROM server_key',
    )
    expect(row!.longest).toBeLessThan(Date.now() + 7 * 24 * 3_600_000 + 1)
  })

  it.each(liesTo('keys').filter((lie) => ![...believed, 'old keys'].includes(lie)))(
    '%s: nothing that it signs is believed',
    async (lie) => {
      expect(await asksWith(lie, home.name)).toBe(401)
    },
  )

  it('an old key signs no request, whatever time it names', async () => {
    const old = signingKeyFromSeed('ed25519:old', randomBytes(32))
    const named = (expired_ts: number) => ({ [old.keyId]: { key: old.publicKey, expired_ts } })
    expect(await asksWith('old keys', named(Date.now() - 1000), { key: old })).toBe(401)
    expect(await asksWith('old keys', named(Date.now() + 3_600_000), { key: old })).toBe(401)
  })
})
