import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BuiltEvent, buildEvent, type EventDraft } from '../../src/core/event/build.ts'
import { referencedId } from '../../src/core/event/format.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import { eventIdOf, signEvent } from '../../src/core/signing/event-hash.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { goes, handOver, openPeer, type Peer, proposed } from '../federation/hostile/peer.ts'
import { type Account, createRoom, type Json, sendText } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { json } from '../support/tls-server.ts'

let street: Neighbourhood
let home: Neighbour
let peer: Peer
let alice: Account

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  peer = await openPeer(street.authority)
  alice = await home.person('alice')
})

afterAll(async () => {
  await peer?.close()
  await street?.close()
})

const enc = encodeURIComponent
const F = '/_matrix/federation'
const V = roomVersion('11')!
const there = () => ({ name: home.name, url: home.server.baseUrl })
const knockable = [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }]
const makeRoom = (body: object = {}) =>
  createRoom(home.api, alice.token, { preset: 'public_chat', room_version: '11', ...body })

type Step = 'join' | 'leave' | 'knock'
const STEPS: readonly Step[] = ['join', 'leave', 'knock']

/** A template of what the peer's user may do in a new room. */
async function drafted(step: Step): Promise<EventDraft> {
  const room = await makeRoom(step === 'knock' ? { initial_state: knockable } : {})
  if (step === 'leave') await goes(peer, there(), 'join', room)
  return (await proposed(peer, there(), step, room)).body.event
}

const outcome = ({ status, body }: { status: number; body: Json }) => [status, body.errcode]

describe.each(STEPS)('send_%s', (step) => {
  test('B16: of an event that is no canonical JSON is M_BAD_JSON', async () => {
    const { pdu, eventId } = peer.sign('11', await drafted(step))
    const path = [String(pdu.room_id), eventId].map(enc).join('/')
    const uri = `${F}/${step === 'knock' ? 'v1' : 'v2'}/send_${step}/${path}`
    const event = { ...pdu, content: { ...pdu.content, 'org.example.half': 0.5 } }
    expect(outcome(await peer.ask(there(), 'PUT', uri, { body: event as Json }))).toEqual([400, 'M_BAD_JSON'])
  })

  test('B16: of an event without a good signature is 403', async () => {
    const { pdu } = peer.sign('11', await drafted(step))
    const otherKey = signingKeyFromSeed(peer.key.keyId, randomBytes(32))
    const forged = signEvent(V, { ...pdu, signatures: {} }, peer.name, otherKey)
    const badly = { pdu: forged, eventId: eventIdOf(V, forged) } as BuiltEvent
    expect(outcome(await handOver(peer, there(), step, badly))).toEqual([403, 'M_FORBIDDEN'])
  })

  test("B16: of an event of another server's user is 403", async () => {
    const stranger = `@eve:elsewhere.test`
    const draft = { ...(await drafted(step)), sender: stranger, state_key: stranger } as EventDraft
    expect(outcome(await handOver(peer, there(), step, peer.sign('11', draft)))).toEqual([403, 'M_FORBIDDEN'])
  })
})

describe('an invitation', () => {
  const invite = (event: Json, eventId: string, room_id: string) =>
    peer.ask(there(), 'PUT', `${F}/v2/invite/${enc(room_id)}/${enc(eventId)}`, {
      body: { room_version: '11', event, invite_room_state: [] },
    })
  const draft = (sender: string): EventDraft =>
    ({
      ...{ type: 'm.room.member', room_id: `!lair:${peer.name}`, sender, state_key: alice.userId, depth: 3 },
      ...{ content: { membership: 'invite' }, origin_server_ts: Date.now(), prev_events: [], auth_events: [] },
    }) as unknown as EventDraft

  test('B16: that is no canonical JSON is M_BAD_JSON', async () => {
    const { pdu, eventId } = peer.sign('11', draft(peer.eve))
    const event = { ...pdu, content: { ...pdu.content, 'org.example.half': 0.5 } }
    expect(outcome(await invite(event, eventId, pdu.room_id!))).toEqual([400, 'M_BAD_JSON'])
  })

  test('B16: without a good signature is 403', async () => {
    const otherKey = signingKeyFromSeed(peer.key.keyId, randomBytes(32))
    const { pdu, eventId } = buildEvent(V, draft(peer.eve), peer.name, otherKey)
    expect(outcome(await invite(pdu, eventId, pdu.room_id!))).toEqual([403, 'M_FORBIDDEN'])
  })

  test("B16: by another server's user is 403", async () => {
    const { pdu, eventId } = peer.sign('11', draft('@eve:elsewhere.test'))
    expect(outcome(await invite(pdu, eventId, pdu.room_id!))).toEqual([403, 'M_FORBIDDEN'])
  })
})

describe('send_knock', () => {
  const flaws: readonly [string, (pdu: Json) => Json][] = [
    ['of another type', (pdu) => ({ ...pdu, type: 'm.room.name' })],
    ['of another membership', (pdu) => ({ ...pdu, content: { membership: 'join' } })],
    ['about somebody else', (pdu) => ({ ...pdu, state_key: '@other:elsewhere.test' })],
    ['without a place', ({ prev_events: _, ...pdu }) => pdu],
    ['without a hash', ({ hashes: _, ...pdu }) => pdu],
  ]

  test.each(flaws)('B16: judges the shape first: 400 for an event %s, whatever the room is', async (_, flaw) => {
    const rooms = [await makeRoom(), await makeRoom({ preset: 'private_chat' }), '!nowhere:elsewhere.test']
    const { pdu } = peer.sign('11', await drafted('knock'))
    for (const room_id of rooms) {
      const path = `${F}/v1/send_knock/${enc(room_id)}/${enc(`$${'A'.repeat(43)}`)}`
      const { status, body } = await peer.ask(there(), 'PUT', path, { body: flaw({ ...pdu, room_id }) })
      expect([status, typeof body.errcode]).toEqual([400, 'string'])
    }
  })
})

describe('a make_join that another server refuses', () => {
  test.each([
    [403, 'M_FORBIDDEN'],
    [400, 'M_INVALID_PARAM'],
    [400, 'M_BAD_JSON'],
    [400, 'M_MISSING_PARAM'],
    [400, 'M_UNABLE_TO_AUTHORISE_JOIN'],
    [429, 'M_LIMIT_EXCEEDED'],
  ])('B16: %i %s is passed on to the client as it is', async (status, errcode) => {
    peer.answer('make_join', json({ errcode, error: 'not you' }, status))
    const path = `/join/${enc('!elsewhere')}?server_name=${peer.name}`
    const answer = await home.api.request('POST', path, { token: alice.token, body: {} })
    peer.repent()
    expect(outcome(answer)).toEqual([status, errcode])
    expect(answer.body.error).toContain('not you')
  })
})

test("B16: a stray join_authorised_via_users_server in one's own member PUT is dropped when already joined", async () => {
  const bob = await home.person('bob')
  const room = await makeRoom()
  await home.api.call('POST', `/join/${enc(room)}`, { token: bob.token, body: {} })
  const path = `/rooms/${enc(room)}/state/m.room.member/${enc(bob.userId)}`
  const content = { membership: 'join', displayname: 'Bobby' }
  const body = { ...content, join_authorised_via_users_server: alice.userId }
  await home.api.call('PUT', path, { token: bob.token, body })
  expect(await home.api.call('GET', path, { token: bob.token })).toEqual(content)
})

describe.each(['1', '10', '11', '12'])('room version %s', (room_version) => {
  const version = roomVersion(room_version)!
  const citedBy = (event: Json): string[] => event.auth_events.map(referencedId)
  const idOf = (event: Json): string => event.event_id ?? eventIdOf(version, event)

  function expectOrdered(chain: readonly Json[]): void {
    const ids = chain.map(idOf)
    expect(new Set(ids).size).toBe(ids.length)
    for (const [index, event] of chain.entries()) {
      for (const cited of citedBy(event)) expect(ids.slice(0, index)).toContain(cited)
    }
    expect(chain[0]?.type).toBe('m.room.create')
  }

  test('B16: event_auth and auth_chain come in topological order, with the create event', async () => {
    const room = await makeRoom({ room_version })
    const levels = await home.api.call('GET', `/rooms/${enc(room)}/state/m.room.power_levels`, { token: alice.token })
    const set = (body: object) =>
      home.api.call('PUT', `/rooms/${enc(room)}/state/m.room.power_levels`, { token: alice.token, body })
    await set({ ...levels, invite: 1 })
    await home.api.call('PUT', `/rooms/${enc(room)}/state/m.room.join_rules`, {
      ...{ token: alice.token, body: { join_rule: 'public', 'org.example.note': 'again' } },
    })
    await set({ ...levels, invite: 2 })
    const { body } = await proposed(peer, there(), 'join', room)
    const joined = await handOver(peer, there(), 'join', peer.sign(room_version, body.event))
    expect(joined.status).toBe(200)
    expectOrdered(joined.body.auth_chain)
    const said = await sendText(home.api, alice.token, room, `said-${room_version}`, 'hello')
    const asked = (uri: string) => peer.ask(there(), 'GET', `${F}/v1/${uri}`)
    expectOrdered((await asked(`event_auth/${enc(room)}/${enc(said)}`)).body.auth_chain)
    const shown = (await asked(`state/${enc(room)}?event_id=${enc(said)}`)).body
    expectOrdered(shown.auth_chain)
    const { auth_chain_ids } = (await asked(`state_ids/${enc(room)}?event_id=${enc(said)}`)).body
    expect(auth_chain_ids).toEqual(shown.auth_chain.map(idOf))
  })
})
