import { afterAll, beforeAll, expect, test } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { MAX_INVITATION_BYTES, MAX_OPEN_INVITATIONS, MAX_STRIPPED_STATE_BYTES } from '../../../src/domain/limits.ts'
import { type Account, type Json, mapConcurrently } from '../../support/api.ts'
import { reached } from '../../support/bounds.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { type HostilePeer, type HostileServers, startHostileServers } from './process.ts'

const VERSION = '11'
const enc = encodeURIComponent

let street: Neighbourhood
let home: Neighbour
let hostile: HostileServers
let rooms = 0

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  hostile = startHostileServers(street.authority)
})
afterAll(async () => {
  await hostile?.close()
  await street?.close()
})

/** Has a server invite a user of ours into a room of its own. */
async function invite(peer: HostilePeer, who: Account, state: JsonObject[] = [], more: JsonObject = {}) {
  const lair = await peer.open(VERSION, `room${rooms++}`)
  const id = lair.member(who.userId as UserId, 'invite', {
    sender: peer.eve,
    content: { membership: 'invite', ...more },
  })
  const uri = `/_matrix/federation/v2/invite/${enc(lair.roomId)}/${enc(id)}`
  const body = { room_version: VERSION, event: JSON.parse(lair.texts.get(id)!), invite_room_state: state }
  const answer = await peer.ask({ name: home.name, url: home.server.baseUrl }, 'PUT', uri, { body })
  return { ...answer, roomId: lair.roomId }
}

const invitations = async ({ token }: Account): Promise<Json> =>
  (await home.api.call('GET', '/sync?timeout=0', { token })).rooms?.invite ?? {}
const shown = (type: string, content: JsonObject, state_key = '') => ({
  type,
  state_key,
  sender: '@eve:e.test',
  content,
})

test('A9: 300 invitations of 60 KB by one server leave a small initial sync', async () => {
  const [peer, alice] = [await hostile.open(), await home.person('alice')]
  const large = [shown('m.room.name', { name: 'x'.repeat(60_000) }), shown('m.room.create', { room_version: VERSION })]
  const answers = await mapConcurrently(Array.from({ length: 300 }), 4, () => invite(peer, alice, large))
  const statuses = answers.map(({ status }) => status)
  // Those that were counted at the same time.
  expect(statuses.filter((status) => status === 200).length).toBeLessThan(MAX_OPEN_INVITATIONS.ofServer + 4)
  const refused = answers.find(({ status }) => status !== 200)!
  expect([refused.status, refused.body.errcode]).toEqual([429, 'M_LIMIT_EXCEEDED'])
  expect(refused.body.retry_after_ms).toBeGreaterThan(0)
  expect(await reached(home.server.metrics(), 'open invitations')).toBe(
    statuses.filter((status) => status === 429).length,
  )
  expect(Buffer.byteLength(JSON.stringify(await invitations(alice)))).toBeLessThan(200_000)
})

test('A9: who was invited much by one server may be invited by another, and again after an answer', async () => {
  const [peer, other, bob] = [await hostile.open(), await hostile.open(), await home.person('bob')]
  const answers = await mapConcurrently(Array.from({ length: MAX_OPEN_INVITATIONS.ofServer }), 4, () =>
    invite(peer, bob),
  )
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  expect((await invite(peer, bob)).status).toBe(429)
  expect((await invite(other, bob)).status).toBe(200)
  const { roomId } = answers[0]!
  await home.api.call('POST', `/rooms/${enc(roomId)}/leave`, { token: bob.token, body: {} })
  expect((await invite(peer, bob)).status).toBe(200)
})

test('A9: invitations of one server to one user are rate-limited, those to others are not', async () => {
  const peer = await hostile.open()
  const [carol, dora] = [await home.person('carol'), await home.person('dora')]
  await home.server.restart({ rate_limits: { enabled: true, invite: { per_second: 0.001, burst: 3 } } })
  const statuses: number[] = []
  for (let n = 0; n < 4; n++) statuses.push((await invite(peer, carol)).status)
  expect(statuses).toEqual([200, 200, 200, 429])
  expect((await invite(peer, dora)).status).toBe(200)
  await home.server.restart({ rate_limits: { enabled: false } })
})

test('A9: an invitation with a large content is refused', async () => {
  const [peer, erin] = [await hostile.open(), await home.person('erin')]
  const before = await reached(home.server.metrics(), 'invitation size')
  const answer = await invite(peer, erin, [], { reason: 'x'.repeat(MAX_INVITATION_BYTES) })
  expect([answer.status, answer.body.errcode]).toEqual([413, 'M_TOO_LARGE'])
  expect(await invitations(erin)).toEqual({})
  expect((await reached(home.server.metrics(), 'invitation size')) - before).toBe(1)
})

test('A9: what comes with an invitation is what a room is recognised by, as far as it fits', async () => {
  const [peer, frida] = [await hostile.open(), await home.person('frida')]
  const state = [
    shown('m.room.topic', { topic: 'x'.repeat(MAX_STRIPPED_STATE_BYTES) }),
    shown('m.room.name', { name: 'Kitchen' }),
    shown('org.example.blob', { x: 1 }),
    shown('m.room.member', { membership: 'join', displayname: 'Eve' }, '@eve:e.test'),
    shown('m.room.create', { room_version: VERSION }),
  ]
  const before = await reached(home.server.metrics(), 'stripped state')
  const { roomId } = await invite(peer, frida, state)
  expect((await reached(home.server.metrics(), 'stripped state')) - before).toBe(1)
  const { events } = (await invitations(frida))[roomId].invite_state
  expect(events.map(({ type }: Json) => type)).toEqual([
    'm.room.create',
    'm.room.name',
    'm.room.member',
    'm.room.member',
  ])
})

test('A9: a room of this server shows as little', async () => {
  const [greta, hanna] = [await home.person('greta'), await home.person('hanna')]
  const body = { preset: 'private_chat', name: 'Kitchen', topic: 'x'.repeat(MAX_STRIPPED_STATE_BYTES) }
  const { room_id: roomId } = await home.api.call('POST', '/createRoom', { token: greta.token, body })
  await home.api.call('POST', `/rooms/${enc(roomId)}/invite`, { token: greta.token, body: { user_id: hanna.userId } })
  const { events } = (await invitations(hanna))[roomId].invite_state
  const types = events.map(({ type }: Json) => type)
  expect(types).toContain('m.room.name')
  expect(types).not.toContain('m.room.topic')
})
