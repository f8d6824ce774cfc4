import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Pdu } from '../../../src/core/event/format.ts'
import type { RoomId, UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { signEvent } from '../../../src/core/signing/event-hash.ts'
import { signJson } from '../../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { type Account, createRoom, type Json, sendText } from '../../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { type WatchedWrites, watchWrites } from '../../support/watched-writes.ts'
import { type Caller, goes, type Home, handOver, proposed } from './peer.ts'
import { type HostilePeer, type HostileServers, startHostileServers } from './process.ts'

/** A server that calls ours, and says what is not so. */

const VERSION = '11'
const V = roomVersion(VERSION)!
const F = '/_matrix/federation'
const enc = encodeURIComponent
const otherKey = signingKeyFromSeed('ed25519:sim', randomBytes(32))

let street: Neighbourhood
let home: Neighbour
let hostile: HostileServers
let peer: HostilePeer
let second: HostilePeer
let alice: Account
let writes: WatchedWrites
/** Rooms of alice's: open to all, open to knocks, and closed. */
let open: string
let knocking: string
let secret: string
const there = (): Home => ({ name: home.name, url: home.server.baseUrl })

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  hostile = startHostileServers(street.authority)
  ;[peer, second] = await Promise.all([hostile.open(), hostile.open()])
  alice = await home.person('alice')
  const room = (more: object) => createRoom(home.api, alice.token, { room_version: VERSION, ...more })
  const rule = { type: 'm.room.join_rules', content: { join_rule: 'knock' } }
  open = await room({ preset: 'public_chat' })
  knocking = await room({ preset: 'public_chat', initial_state: [rule] })
  secret = await room({ preset: 'private_chat' })
  await Promise.all([goes(peer, there(), 'join', open), goes(second, there(), 'join', open)])
  writes = await watchWrites(home.server)
})
afterAll(async () => {
  await writes?.close()
  await hostile?.close()
  await street?.close()
})
beforeEach(async () => void (await writes.read()))
/** What is kept of servers' keys and of users' names is no room's. */
const stored = async () => (await writes.read()).filter((one) => !/^(server_key|matrix_user)/.test(one))

interface Handed {
  readonly pdu: Json
  readonly eventId: string
}
type Flaw = (draft: Json) => Handed

const signed = (draft: Json, by = peer): Handed => by.sign(VERSION, draft)
const changed =
  (change: Json): Flaw =>
  (draft) =>
    signed({ ...draft, ...change })

/** What is wrong with an event that is handed over: of a handshake, each would be signed or stored by a careless server. */
const FLAWS: [string, Flaw][] = [
  [
    'signed with a key that is not its own',
    (draft) => {
      const { pdu, eventId } = signed(draft)
      return { pdu: signEvent(V, { ...pdu, signatures: {} }, peer.name, otherKey), eventId }
    },
  ],
  [
    'without a signature',
    (draft) => {
      const { pdu, eventId } = signed(draft)
      return { pdu: { ...pdu, signatures: {} }, eventId }
    },
  ],
  ['signed by a third server', (draft) => signed(draft, second)],
  ['of another type', changed({ type: 'm.room.power_levels' })],
  ['of a user of another server', (draft) => signed({ ...draft, sender: second.eve, state_key: second.eve })],
  ['of a user of ours', (draft) => signed({ ...draft, sender: alice.userId, state_key: alice.userId })],
  ['about somebody else', (draft) => signed({ ...draft, state_key: second.eve })],
  ['with another membership', changed({ content: { membership: 'ban' } })],
  ['without a membership', changed({ content: {} })],
  ['for another room', (draft) => signed({ ...draft, room_id: secret })],
  ['under another id', (draft) => ({ ...signed(draft), eventId: `$${'x'.repeat(43)}` })],
  [
    'changed after it was hashed',
    (draft) => {
      const { pdu, eventId } = signed(draft)
      return { pdu: { ...pdu, content: { ...pdu.content, displayname: 'Mallory' } }, eventId }
    },
  ],
  ['that cites nothing', changed({ auth_events: [] })],
  ['that builds on nothing', changed({ prev_events: [] })],
  [
    'with more auth_events than there may be',
    (draft) => signed({ ...draft, auth_events: Array(11).fill(draft.auth_events[0]) }),
  ],
]

describe.each(['join', 'leave', 'knock'] as const)('an event that is handed over to %s', (step) => {
  const who = () => `@mallory:${peer.name}` as UserId
  const where = () => (step === 'knock' ? knocking : open)
  let draft: Json
  beforeAll(async () => {
    if (step === 'leave') await goes(peer, there(), 'join', open, who())
    draft = (await proposed(peer, there(), step, where(), who())).body.event
    expect(draft.content.membership).toBe(step)
  })

  it.each(FLAWS)('%s is refused and not kept', async (_, flaw) => {
    const { pdu, eventId } = flaw(draft)
    const path = `${F}/${step === 'knock' ? 'v1' : 'v2'}/send_${step}/${enc(where())}/${enc(eventId)}`
    const { status, body } = await peer.ask(there(), 'PUT', path, { body: pdu })
    // Of who changes what they have signed, the signed part counts, as everywhere; only that is let in.
    if (status === 200) expect(JSON.stringify(body)).not.toContain('Mallory')
    else expect([status, await stored()]).toEqual([status < 500 ? status : 'a refusal', []])
    // What a knock is shown is our own.
    const { knock_room_state: _shown, ...shared } = body
    expect(JSON.stringify(shared)).not.toContain(`"${home.name}":{"ed25519`)
  })

  it('for a room that its sender may not even ask about', async () => {
    const { pdu, eventId } = signed({ ...draft, room_id: secret })
    const answer = await handOver(peer, there(), step, { pdu, eventId: eventId as never })
    expect([answer.status, answer.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
    expect(await stored()).toEqual([])
  })
})

describe('an invitation', () => {
  const invite = (by: Caller, version: string, { pdu, eventId }: Handed, room = pdu.room_id) => {
    const body = { room_version: version, event: pdu, invite_room_state: [] }
    return by.ask(there(), 'PUT', `${F}/v2/invite/${enc(room)}/${enc(eventId)}`, { body })
  }
  const draft = (): Json => ({
    ...{ type: 'm.room.member', room_id: `!lair:${peer.name}`, sender: peer.eve, state_key: alice.userId },
    ...{
      content: { membership: 'invite' },
      depth: 5,
      origin_server_ts: Date.now(),
      prev_events: ['$a'],
      auth_events: ['$b'],
    },
  })

  it.each<[string, Flaw]>([
    ...FLAWS.filter(([name]) => !/ours|cites nothing|builds on|somebody else|another room/.test(name)),
    ['for nobody of ours', (one) => signed({ ...one, state_key: second.eve })],
    ['for a user that there is not', (one) => signed({ ...one, state_key: `@nobody:${home.name}` })],
    ['for text', changed({ state_key: 'alice' })],
    ['in the name of a user of ours', (one) => signed({ ...one, sender: alice.userId })],
    [
      'with a depth below nothing',
      (one) => {
        const { pdu, eventId } = signed(one)
        return { pdu: { ...pdu, depth: -1 }, eventId }
      },
    ],
  ])('%s is refused, not signed and not kept', async (_, flaw) => {
    const { status, body } = await invite(peer, VERSION, flaw(draft()))
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
    expect(JSON.stringify(body)).not.toContain('signatures')
    expect(await stored()).toEqual([])
  })

  it('to a room of a version that nobody knows', async () => {
    const { status, body } = await invite(peer, 'evil', signed(draft()))
    expect([status, body.errcode, body.room_version]).toEqual([400, 'M_INCOMPATIBLE_ROOM_VERSION', 'evil'])
  })

  it('to a room id in the path that is not the one inside', async () => {
    const { status } = await invite(peer, VERSION, signed(draft()), '!other:elsewhere.test')
    expect([status, await stored()]).toEqual([400, []])
  })

  it('that lies about the version of a room leaves the way open to those who do not', async () => {
    const lair = await second.open(VERSION, 'honest')
    // Two versions whose events look alike.
    const lie = peer.sign('10', { ...draft(), room_id: lair.roomId })
    expect((await invite(peer, '10', lie as Handed)).status).toBe(200)
    const joined = await home.api.request('POST', `/join/${enc(lair.roomId)}?via=${second.name}`, {
      token: alice.token,
      body: {},
    })
    expect(joined).toEqual({ status: 200, body: { room_id: lair.roomId } })
    await sendText(home.api, alice.token, lair.roomId, 'here', 'here')
  })
})

describe('an address that was invited, exchanged for an invitation (exchange_third_party_invite)', () => {
  const vouching = signingKeyFromSeed('ed25519:0', randomBytes(32))
  const token = 'abc'
  beforeAll(async () => {
    const path = `/rooms/${enc(open)}/state/m.room.third_party_invite/${token}`
    const body = { display_name: 'e...', public_key: vouching.publicKey }
    await home.api.call('PUT', path, { token: alice.token, body })
  })
  const guest = () => `@guest:${peer.name}`
  const word = (change: Json = {}, key = vouching) => signJson({ mxid: guest(), token, ...change }, 'id.test', key)
  const claim = (signedWord: Json, change: Json = {}): JsonObject => ({
    ...{ type: 'm.room.member', room_id: open, sender: alice.userId, state_key: guest() },
    content: { membership: 'invite', third_party_invite: { display_name: 'e...', signed: signedWord } },
    ...change,
  })

  it.each<[string, () => JsonObject]>([
    ['signed with a key that the room does not name', () => claim(word({}, otherKey))],
    ['that nobody signed', () => claim({ mxid: guest(), token, signatures: {} })],
    ['for somebody else', () => claim(word({ mxid: second.eve }))],
    ['for another token', () => claim(word({ token: 'xyz' }))],
    ['changed after it was signed', () => claim({ ...word(), token, mxid: guest(), extra: 1 })],
    ['for another room', () => claim(word(), { room_id: secret })],
    ['by who did not invite', () => claim(word(), { sender: `@bob:${home.name}` })],
    ['by a user of another server', () => claim(word(), { sender: second.eve })],
    ['for a user of another server', () => claim(word({ mxid: second.eve }), { state_key: second.eve })],
    ['for a user of ours', () => claim(word({ mxid: alice.userId }), { state_key: alice.userId })],
    [
      'with another membership',
      () => claim(word(), { content: { membership: 'join', third_party_invite: { signed: word() } } }),
    ],
    ['of another type', () => claim(word(), { type: 'm.room.power_levels' })],
  ])('%s is refused, and nobody is invited', async (_, body) => {
    const { status } = await peer.ask(there(), 'PUT', `${F}/v1/exchange_third_party_invite/${enc(open)}`, {
      body: body(),
    })
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
    expect(await stored()).toEqual([])
    expect((await peer.signedBy(home.name)).filter(({ type }) => type === 'm.room.member')).toEqual([])
  })
})

describe('a transaction', () => {
  let count = 0
  const sends = (by: Caller, pdus: readonly Json[], edus: readonly Json[] = [], id = `h${++count}`) =>
    by.ask(there(), 'PUT', `${F}/v1/send/${id}`, {
      body: { origin: by.name, origin_server_ts: 1, pdus: [...pdus], edus: [...edus] },
    })
  const events = async () =>
    (await home.api.call('GET', `/rooms/${enc(open)}/messages?dir=b&limit=100`, { token: alice.token })).chunk
  const inbox = async () => home.api.call('GET', '/sync?timeout=0', { token: alice.token })
  let draft: Json
  beforeAll(async () => {
    const { body } = await proposed(peer, there(), 'leave', open)
    const { content: _, state_key: __, ...place } = body.event
    draft = { ...place, type: 'm.room.message', content: { msgtype: 'm.text', body: 'forged' } }
  })

  it.each<[string, (draft: Json) => Json]>([
    [
      'signed with a key that is not its own',
      (one) => signEvent(V, { ...signed(one).pdu, signatures: {} }, peer.name, otherKey),
    ],
    ['without a signature', (one) => ({ ...signed(one).pdu, signatures: {} })],
    ['of a user of ours', (one) => signed({ ...one, sender: alice.userId }).pdu],
    ['of a user of another server', (one) => signed({ ...one, sender: second.eve }).pdu],
    ['of a user who is not in the room', (one) => signed({ ...one, sender: `@nobody:${peer.name}` }).pdu],
    ['with a depth beyond all', (one) => ({ ...signed(one).pdu, depth: 2 ** 63 })],
    [
      'with state that its sender may not set',
      (one) => signed({ ...one, type: 'm.room.name', state_key: '', content: { name: 'forged' } }).pdu,
    ],
    [
      'in a room that its server is not in',
      (one) => signed({ ...one, room_id: secret, content: { body: 'forged' } }).pdu,
    ],
    ['in a room that nobody knows', (one) => signed({ ...one, room_id: '!nowhere:elsewhere.test' as RoomId }).pdu],
    ['that is text', () => 'forged'],
  ])('an event %s is shown to nobody', async (_, forge) => {
    expect((await sends(peer, [forge(draft)])).status).toBe(200)
    expect(JSON.stringify(await events())).not.toContain('forged')
    expect(JSON.stringify(await inbox())).not.toContain('forged')
  })

  it('a word of others is not believed: who types, what was read, who is here, messages to devices', async () => {
    const bob = second.eve
    const said = await sendText(home.api, alice.token, open, 'said', 'said')
    const edus = [
      { edu_type: 'm.typing', content: { room_id: open, user_id: bob, typing: true } },
      { edu_type: 'm.receipt', content: { [open]: { 'm.read': { [bob]: { event_ids: [said], data: { ts: 1 } } } } } },
      { edu_type: 'm.presence', content: { push: [{ user_id: bob, presence: 'online', status_msg: 'forged' }] } },
      {
        edu_type: 'm.direct_to_device',
        content: {
          sender: bob,
          type: 'forged',
          message_id: 'm1',
          messages: { [alice.userId]: { '*': { forged: 1 } } },
        },
      },
      { edu_type: 'm.device_list_update', content: { user_id: bob, device_id: 'X', stream_id: 1, prev_id: [] } },
      { edu_type: 'm.signing_key_update', content: { user_id: bob } },
    ]
    const { next_batch } = await inbox()
    expect((await sends(peer, [], edus)).status).toBe(200)
    const news = await home.api.call('GET', `/sync?timeout=0&since=${next_batch}`, { token: alice.token })
    const none = { rooms: undefined, presence: undefined, to_device: { events: [] } }
    expect(news).toMatchObject({ device_lists: { changed: [], left: [] } })
    expect({ rooms: news.rooms, presence: news.presence, to_device: news.to_device }).toEqual(none)

    // Of the server that may say it, all of it is believed.
    expect((await sends(second, [], edus)).status).toBe(200)
    const heard = await home.api.call('GET', `/sync?timeout=0&since=${next_batch}`, { token: alice.token })
    expect(heard.device_lists.changed).toEqual([bob])
    expect(heard.presence.events).toHaveLength(1)
    expect(heard.to_device.events).toHaveLength(1)
    expect(heard.rooms.join[open].ephemeral.events.map(({ type }: Json) => type).sort()).toEqual([
      'm.receipt',
      'm.typing',
    ])
  })

  it('a receipt in a thread is believed where its event is in that thread', async () => {
    const reader = second.eve
    const root = await sendText(home.api, alice.token, open, 'root', 'of-receipts')
    const read = (id: string, data: object) =>
      sends(
        second,
        [],
        [{ edu_type: 'm.receipt', content: { [open]: { 'm.read': { [reader]: { event_ids: [id], data } } } } }],
      )
    const { next_batch } = await inbox()
    for (const thread_id of ['$elsewhere', 'x'.repeat(1_000), 7, [root]]) {
      expect((await read(root, { ts: 1, thread_id })).status).toBe(200)
    }
    const shared = async () => {
      const { rooms } = await home.api.call('GET', `/sync?timeout=0&since=${next_batch}`, { token: alice.token })
      return rooms?.join?.[open]?.ephemeral?.events?.find(({ type }: Json) => type === 'm.receipt')?.content
    }
    expect(await shared()).toBeUndefined()
    expect((await read(root, { ts: 1, thread_id: 'main' })).status).toBe(200)
    expect(await shared()).toEqual({ [root]: { 'm.read': { [reader]: { ts: 1, thread_id: 'main' } } } })
  })

  it('that is sent again is not taken in again, nor under its id by another server', async () => {
    const first = signed({ ...draft, content: { msgtype: 'm.text', body: 'once' } })
    const answer = await sends(peer, [first.pdu], [], 'replayed')
    expect(answer.body.pdus).toEqual({ [first.eventId]: {} })
    await writes.read()
    expect(await sends(peer, [first.pdu], [], 'replayed')).toEqual(answer)
    expect(await sends(second, [first.pdu], [], 'replayed')).toEqual(answer)
    expect((await events()).filter(({ content }: Json) => content.body === 'once')).toHaveLength(1)
    expect((await stored()).filter((one) => one.startsWith('event'))).toEqual([])
  })
})

describe('bodies', () => {
  const path = `${F}/v1/send/bodies`

  it('that are compressed are not unpacked', async () => {
    const packed = gzipSync(JSON.stringify({ pdus: [], pad: ' '.repeat(50_000_000) }))
    const answer = await fetch(home.server.baseUrl + path, {
      method: 'PUT',
      headers: {
        'content-encoding': 'gzip',
        'content-type': 'application/json',
        authorization: 'X-Matrix origin="a",key="ed25519:b",sig="c"',
      },
      body: packed,
    })
    expect([answer.status, ((await answer.json()) as Json).errcode]).toEqual([401, 'M_UNAUTHORIZED'])
  })

  it('without end are broken off', async () => {
    const { port } = new URL(home.server.baseUrl)
    const chunk = Buffer.alloc(1 << 20, 0x20)
    const sent = await new Promise<number>((resolve) => {
      let bytes = 0
      const socket = connect(Number(port), '127.0.0.1', () => {
        socket.write(
          `PUT ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
        )
        const more = () => {
          if (socket.destroyed || bytes > 1 << 28) return
          bytes += chunk.length
          socket.write(`${chunk.length.toString(16)}\r\n`)
          if (socket.write(chunk) && socket.write('\r\n')) setImmediate(more)
          else socket.once('drain', more)
        }
        more()
      })
      socket.on('data', () => socket.destroy())
      socket.on('error', () => undefined)
      socket.on('close', () => resolve(bytes))
    })
    expect(sent).toBeLessThan(1 << 27)
  })
})

it('after all of it the rooms are as they were, and everybody honest is heard', async () => {
  await sendText(home.api, alice.token, open, 'still', 'still')
  const { body } = await proposed(second, there(), 'leave', open)
  expect((await handOver(second, there(), 'leave', second.sign(VERSION, body.event))).status).toBe(200)
  const members = await home.api.call('GET', `/rooms/${enc(secret)}/joined_members`, { token: alice.token })
  expect(Object.keys(members.joined)).toEqual([alice.userId])
  const rows = await home.server.database.db.query<{ json: string }>('SELECT json FROM event')
  const byUs = rows
    .map(({ json }) => JSON.parse(json) as Pdu)
    .filter(({ signatures }) => Object.hasOwn(signatures, home.name))
  // Of what others say, invitations of our users alone carry our signature.
  const strange = byUs.filter(
    ({ sender, content, state_key }) =>
      sender !== alice.userId && !(content.membership === 'invite' && state_key === alice.userId),
  )
  expect(strange).toEqual([])
})
