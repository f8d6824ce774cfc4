import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { MAX_STRIPPED_STATE, MAX_STRIPPED_STATE_BYTES } from '../../../src/domain/limits.ts'
import { type Account, createRoom, type Json, sendText } from '../../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { goes, type Home } from './peer.ts'
import { type HostilePeer, type HostileServers, startHostileServers } from './process.ts'

/** A server that takes part in a room, and wants to know of others; and what it shows of its own rooms. */

const F = '/_matrix/federation/v1'
const enc = encodeURIComponent

let street: Neighbourhood
let home: Neighbour
let hostile: HostileServers
let peer: HostilePeer
let alice: Account
const there = (): Home => ({ name: home.name, url: home.server.baseUrl })

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  hostile = startHostileServers(street.authority)
  peer = await hostile.open()
  alice = await home.person('alice')
})
afterAll(async () => {
  await hostile?.close()
  await street?.close()
})
afterEach(() => peer.repent())

/** Everything that can be asked of a room with the id of an event. */
const questions = (room: string, event: string): readonly [string, string, JsonObject?][] => [
  ['GET', `${F}/event_auth/${enc(room)}/${enc(event)}`],
  ['GET', `${F}/state/${enc(room)}?event_id=${enc(event)}`],
  ['GET', `${F}/state_ids/${enc(room)}?event_id=${enc(event)}`],
  ['GET', `${F}/backfill/${enc(room)}?v=${enc(event)}&limit=100`],
  [
    'POST',
    `${F}/get_missing_events/${enc(room)}`,
    { earliest_events: [], latest_events: [event], limit: 100, min_depth: 0 },
  ],
  ['GET', `${F}/event/${enc(event)}`],
]

const answersTo = (room: string, event: string) =>
  Promise.all(
    questions(room, event).map(async ([method, uri, body]) => {
      const answer = await peer.ask(there(), method, uri, body && { body })
      return [uri.split('/')[4]!, answer] as const
    }),
  )

it('through a room that it is in, a server learns nothing of events in another', async () => {
  const open = await createRoom(home.api, alice.token, { preset: 'public_chat' })
  const secret = await createRoom(home.api, alice.token, { preset: 'private_chat', name: 'hidden name' })
  const said = await sendText(home.api, alice.token, secret, 'hidden', 'hidden text')
  await goes(peer, there(), 'join', open)
  for (const [name, { status, body }] of await answersTo(open, said)) {
    expect([name, JSON.stringify(body)]).not.toEqual([name, expect.stringContaining('hidden')])
    expect([name, JSON.stringify(body)]).not.toEqual([name, expect.stringContaining(secret)])
    expect([name, status === 404 || (body.events ?? body.pdus)?.length === 0]).toEqual([name, true])
  }
})

describe('a server that came into a room later', () => {
  it.each(['joined', 'invited'])(
    'is told what was said before without its content, where history is for the %s',
    async (visibility) => {
      const setting = { type: 'm.room.history_visibility', state_key: '', content: { history_visibility: visibility } }
      const room = await createRoom(home.api, alice.token, { preset: 'public_chat', initial_state: [setting] })
      const before = await sendText(home.api, alice.token, room, 'b', 'hidden text')
      await goes(peer, there(), 'join', room)
      const after = await sendText(home.api, alice.token, room, 'a', 'open text')
      const answers = [...(await answersTo(room, before)), ...(await answersTo(room, after))]
      expect(answers.filter(([, { status }]) => status === 200).length).toBeGreaterThan(8)
      expect(JSON.stringify(answers)).not.toContain('hidden text')
      expect(JSON.stringify(answers)).toContain('open text')
    },
  )
})

/** What should be a list of a few events. */
const ODD: readonly (readonly [string, Json])[] = [
  ['a number', 7],
  ['an object', { type: 'm.room.name' }],
  ['null', null],
  ['text', 'm.room.name'],
  ['a list of odd things', [7, null, 'x', [], {}, { type: 7, state_key: [], sender: {}, content: 'x' }]],
  ['names that are no text', [{ type: 'm.room.name', state_key: '', sender: '@a:b', content: { name: { x: 1 } } }]],
  ['a member without a membership', [{ type: 'm.room.member', state_key: '@a:b', sender: '@a:b', content: {} }]],
  [
    'ten thousand events',
    Array.from({ length: 10_000 }, (_, n) => ({ type: 'x', state_key: `${n}`, sender: '@a:b', content: {} })),
  ],
  ['a megabyte', [{ type: 'm.room.name', state_key: '', sender: '@a:b', content: { name: 'x'.repeat(1_000_000) } }]],
]

async function shown(kind: 'invite' | 'knock', room: string): Promise<Json[]> {
  const { rooms } = await home.api.call('GET', '/sync?timeout=0', { token: alice.token })
  const section = rooms[kind][room]
  return (section.invite_state ?? section.knock_state).events
}

describe('what another server shows of a room', () => {
  let count = 0

  it.each(ODD)('with an invitation, being %s, spoils no sync and is kept within bounds', async (_, state) => {
    const lair = await peer.open('11', `invites${count++}`)
    const id = lair.member(alice.userId as UserId, 'invite', { sender: peer.eve })
    const body = { room_version: '11', event: JSON.parse(lair.texts.get(id)!), invite_room_state: state }
    const uri = `/_matrix/federation/v2/invite/${enc(lair.roomId)}/${enc(id)}`
    expect((await peer.ask(there(), 'PUT', uri, { body })).status).toBe(200)
    const events = await shown('invite', lair.roomId)
    expect(events.at(-1)).toMatchObject({ type: 'm.room.member', state_key: alice.userId })
    expect(events.length).toBeLessThanOrEqual(MAX_STRIPPED_STATE + 1)
    expect(JSON.stringify(events).length).toBeLessThan(MAX_STRIPPED_STATE_BYTES + 2_000)
  })

  it.each(ODD)('with a knock, being %s, spoils no sync and is kept within bounds', async (_, state) => {
    const lair = await peer.open('11', `knocks${count++}`, 'knock')
    await peer.lie('send_knock', 'what it is told to', state)
    const path = `/knock/${enc(lair.roomId)}?via=${peer.name}`
    const { status } = await home.api.request('POST', path, { token: alice.token, body: {} })
    expect([200, 502]).toContain(status)
    if (status === 502) return void (await home.api.call('GET', '/sync?timeout=0', { token: alice.token }))
    const events = await shown('knock', lair.roomId)
    expect(events.length).toBeLessThanOrEqual(MAX_STRIPPED_STATE + 1)
    expect(JSON.stringify(events).length).toBeLessThan(MAX_STRIPPED_STATE_BYTES + 2_000)
  })
})
