import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { EventId, RoomId } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { expandPath } from '../../src/core/paths.ts'
import type { Endpoint } from '../../src/http/endpoint.ts'
import { goes, type Home, openPeer, type Peer } from '../federation/hostile/peer.ts'
import { type Account, createRoom, type Json, sendText } from '../support/api.ts'
import { CLIENT_API, SERVER_API } from '../support/interfaces.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'

let street: Neighbourhood
let home: Neighbour
let peer: Peer
let outsider: Account
/** A room that the asking user and server are not in, and an event of it. */
let real: Named
/** What there is not, of the same looks. */
const made: Named = { roomId: `!${'x'.repeat(43)}` as RoomId, eventId: `$${'y'.repeat(43)}` as EventId }
/** A room that the asking user is in, and one that the asking server is in. */
let own: RoomId
let shared: RoomId

interface Named {
  readonly roomId: RoomId
  readonly eventId: EventId
}

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  peer = await openPeer(street.authority)
  const alice = await home.person('alice')
  outsider = await home.person('outsider')
  const roomId = (await createRoom(home.api, alice.token, { preset: 'private_chat', room_version: '12' })) as RoomId
  real = { roomId, eventId: (await sendText(home.api, alice.token, roomId, 'secret', 'secret')) as EventId }
  own = (await createRoom(home.api, outsider.token, { room_version: '12' })) as RoomId
  shared = (await createRoom(home.api, alice.token, { preset: 'public_chat', room_version: '12' })) as RoomId
  await goes(peer, { name: home.name, url: home.server.baseUrl }, 'join', shared)
})
afterAll(async () => {
  await peer?.close()
  await street?.close()
})

const enc = encodeURIComponent
const namesRoom = ({ path }: Endpoint) => /\{(roomId|eventId|roomIdOrAlias)\}/.test(path)
const linesOf = (endpoints: readonly Endpoint[]) =>
  endpoints.map((endpoint): [string, Endpoint] => [`${endpoint.method} ${endpoint.path}`, endpoint])

interface Asked {
  readonly status: number
  readonly body: Json
  readonly queries: number
}

/** An answer with the names of rooms and events and the time taken out, and how often the database was asked for it. */
async function asked(names: Named, ask: () => Promise<{ status: number; body: Json }>): Promise<Asked> {
  const spy = vi.spyOn(pg.Client.prototype, 'query')
  const { status, body } = await ask()
  const queries = spy.mock.calls.length
  spy.mockRestore()
  const text = JSON.stringify(body ?? null)
    .replaceAll(names.roomId, 'ROOM')
    .replaceAll(names.eventId, 'EVENT')
    .replace(/"origin_server_ts":\d+/, '"origin_server_ts":0')
  return { status, body: JSON.parse(text), queries }
}

const TRIES = 8

/** The least of some tries: what a server does now and then by itself is not counted. */
async function leastOf(names: Named, ask: () => Promise<{ status: number; body: Json }>): Promise<Asked> {
  const all: Asked[] = []
  while (all.length < TRIES) all.push(await asked(names, ask))
  return { ...all.at(-1)!, queries: Math.min(...all.map(({ queries }) => queries)) }
}

/** A look for a room that is not in memory is a query each time: nothing that takes as long as reading a room. */
const LOOKS = 5

async function expectAlike(ask: (names: Named) => Promise<{ status: number; body: Json }>, one: Named, other: Named) {
  const { queries, ...first } = await leastOf(one, () => ask(one))
  const { queries: least, ...second } = await leastOf(other, () => ask(other))
  expect(first).toEqual(second)
  expect(Math.abs(queries - least)).toBeLessThanOrEqual(LOOKS)
  return first
}

describe('a user who is not in a room hears the same of it and of a room that is not there', () => {
  const bodies: readonly (readonly [RegExp, (names: Named) => object])[] = [
    [/(invite|kick|ban|unban)$/, () => ({ user_id: '@alice:localhost' })],
    [/read_markers$/, ({ eventId }) => ({ 'm.fully_read': eventId, 'm.read': eventId })],
    [/typing/, () => ({ typing: true, timeout: 1000 })],
    [/send\/|state\/|redact/, () => ({ msgtype: 'm.text', body: 'x' })],
    [/room_keys\/keys\/\{roomId\}$/, () => ({ sessions: {} })],
    [/room_keys/, () => ({ first_message_index: 1, forwarded_count: 1, is_verified: false, session_data: {} })],
    [/directory\/list/, () => ({ visibility: 'public' })],
  ]

  async function ask({ method, path, options }: Endpoint, { roomId, eventId }: Named, n: number) {
    const params: Record<string, string> = {
      ...{ roomId, eventId, roomIdOrAlias: roomId, userId: outsider.userId, txnId: `t${n}`, type: 'org.example' },
      ...{ eventType: 'm.room.name', stateKey: '', receiptType: 'm.read', sessionId: 's' },
    }
    const [first] = expandPath(path)
    const url = first!.path.replace(/:(\w+)/g, (_, name: string) => enc(params[name]!))
    const query = path.includes('messages')
      ? '?dir=b'
      : path.includes('timestamp')
        ? '?ts=1&dir=f'
        : path.includes('room_keys')
          ? '?version=1'
          : ''
    const body = options.body && (bodies.find(([of]) => of.test(path))?.[1]({ roomId, eventId }) ?? {})
    return home.api.request(method, url + query, { token: outsider.token, ...(body && { body }) })
  }

  const lines = linesOf(CLIENT_API.filter(namesRoom))
  it.each(lines)('%s', async (_, endpoint) => {
    let n = 0
    await expectAlike((names) => ask(endpoint, names, n++), real, made)
  })

  it.each(lines.filter(([line]) => line.includes('{eventId}')))(
    'nor of an event in a room of their own: %s',
    async (_, endpoint) => {
      let n = 0
      const [one, other] = [real, made].map(({ eventId }) => ({ roomId: own, eventId })) as [Named, Named]
      await expectAlike((names) => ask(endpoint, names, n++), one, other)
    },
  )
})

describe('a server that is not in a room hears the same of it and of a room that is not there', () => {
  const F = '/_matrix/federation'
  const member = ({ roomId }: Named, membership: string): JsonObject =>
    peer.sign('12', {
      ...{ type: 'm.room.member', sender: peer.eve, state_key: peer.eve, room_id: roomId, content: { membership } },
      ...{ prev_events: [real.eventId], auth_events: [], depth: 9, origin_server_ts: 1 },
    }).pdu as JsonObject
  const idOf = (names: Named, membership: string) => peer.sign('12', member(names, membership) as never).eventId
  const handing =
    (step: string, membership: string, version = 'v2') =>
    (names: Named): [string, string, JsonObject] => {
      const where = `${enc(names.roomId)}/${enc(idOf(names, membership))}`
      return ['PUT', `${F}/${version}/send_${step}/${where}`, member(names, membership)]
    }
  const make =
    (step: string) =>
    (names: Named): [string, string] => ['GET', `${F}/v1/make_${step}/${enc(names.roomId)}/${enc(peer.eve)}?ver=12`]
  const invitation = (names: Named): JsonObject => ({ ...member(names, 'invite'), state_key: outsider.userId })
  const claim = (names: Named) => ({
    ...{ medium: 'email', address: 'a@b.c', mxid: outsider.userId, room_id: names.roomId, sender: outsider.userId },
    signed: { mxid: outsider.userId, token: 'x', signatures: { 'id.test': { 'ed25519:0': 'x' } } },
  })
  const bind = (names: Named) => ({ medium: 'email', address: 'a@b.c', mxid: outsider.userId, invites: [claim(names)] })
  const exchange = (names: Named) => ({
    ...{ type: 'm.room.member', room_id: names.roomId, sender: outsider.userId, state_key: peer.eve },
    content: {
      membership: 'invite',
      third_party_invite: { display_name: '', signed: { ...claim(names).signed, mxid: peer.eve } },
    },
  })
  let transactions = 0
  const transaction = (names: Named): JsonObject => ({
    ...{ origin: peer.name, origin_server_ts: 1, pdus: [member(names, 'join')] },
    edus: [
      { edu_type: 'm.typing', content: { room_id: names.roomId, user_id: peer.eve, typing: true } },
      {
        edu_type: 'm.receipt',
        content: { [names.roomId]: { 'm.read': { [peer.eve]: { event_ids: [names.eventId], data: {} } } } },
      },
    ],
  })

  /** By the endpoint's line: those that name a room or an event, in the path or inside. */
  const requests: Readonly<Record<string, (names: Named) => [string, string, object?]>> = {
    'PUT F/v1/send/{txnId}': (names) => ['PUT', `${F}/v1/send/${++transactions}`, transaction(names)],
    'GET F/v1/event_auth/{roomId}/{eventId}': (n) => ['GET', `${F}/v1/event_auth/${enc(n.roomId)}/${enc(n.eventId)}`],
    'GET F/v1/backfill/{roomId}': (n) => ['GET', `${F}/v1/backfill/${enc(n.roomId)}?v=${enc(n.eventId)}&limit=10`],
    'POST F/v1/get_missing_events/{roomId}': (n) => [
      'POST',
      `${F}/v1/get_missing_events/${enc(n.roomId)}`,
      { earliest_events: [], latest_events: [n.eventId], limit: 10 },
    ],
    'GET F/v1/event/{eventId}': (n) => ['GET', `${F}/v1/event/${enc(n.eventId)}`],
    'GET F/v1/state/{roomId}': (n) => ['GET', `${F}/v1/state/${enc(n.roomId)}?event_id=${enc(n.eventId)}`],
    'GET F/v1/state_ids/{roomId}': (n) => ['GET', `${F}/v1/state_ids/${enc(n.roomId)}?event_id=${enc(n.eventId)}`],
    'GET F/v1/timestamp_to_event/{roomId}': (n) => ['GET', `${F}/v1/timestamp_to_event/${enc(n.roomId)}?ts=1&dir=f`],
    'GET F/v1/hierarchy/{roomId}': (n) => ['GET', `${F}/v1/hierarchy/${enc(n.roomId)}`],
    'GET F/v1/make_join/{roomId}/{userId}': make('join'),
    'PUT F/v1/send_join/{roomId}/{eventId}': handing('join', 'join', 'v1'),
    'PUT F/v2/send_join/{roomId}/{eventId}': handing('join', 'join'),
    'GET F/v1/make_knock/{roomId}/{userId}': make('knock'),
    'PUT F/v1/send_knock/{roomId}/{eventId}': handing('knock', 'knock', 'v1'),
    'GET F/v1/make_leave/{roomId}/{userId}': make('leave'),
    'PUT F/v1/send_leave/{roomId}/{eventId}': handing('leave', 'leave', 'v1'),
    'PUT F/v2/send_leave/{roomId}/{eventId}': handing('leave', 'leave'),
    'PUT F/v1/invite/{roomId}/{eventId}': (n) => [
      'PUT',
      `${F}/v1/invite/${enc(n.roomId)}/${enc(n.eventId)}`,
      invitation(n),
    ],
    'PUT F/v2/invite/{roomId}/{eventId}': (n) => [
      'PUT',
      `${F}/v2/invite/${enc(n.roomId)}/${enc(n.eventId)}`,
      { room_version: '12', event: invitation(n), invite_room_state: [] },
    ],
    'PUT F/v1/exchange_third_party_invite/{roomId}': (n) => [
      'PUT',
      `${F}/v1/exchange_third_party_invite/${enc(n.roomId)}`,
      exchange(n),
    ],
    'PUT F/v1/3pid/onbind': (n) => ['PUT', `${F}/v1/3pid/onbind`, bind(n)],
    'POST F/v1/3pid/onbind': (n) => ['POST', `${F}/v1/3pid/onbind`, bind(n)],
  }

  const there = (): Home => ({ name: home.name, url: home.server.baseUrl })
  const built = new Map(linesOf(SERVER_API))

  it('with every endpoint that takes a room or an event', () => {
    expect(
      [...built]
        .filter(([, one]) => namesRoom(one))
        .map(([line]) => line)
        .filter((line) => !(line in requests)),
    ).toEqual([])
  })

  const lines = Object.keys(requests).filter((line) => built.has(line))
  const asking = (line: string, root: string) => (names: Named) => {
    const [method, uri, body] = requests[line]!(names)
    return peer.ask(there(), method, uri.replace('_matrix', root), body && { body: body as JsonObject })
  }

  describe.each(['_matrix', '_proto'])('/%s', (root) => {
    it.each(lines)('%s', async (line) => {
      const { body } = await expectAlike(asking(line, root), real, made)
      expect(body.errcode).not.toBe('M_UNRECOGNIZED')
      await expectAlike(asking(line, root), real, { ...real, eventId: made.eventId })
    })

    it.each(lines.filter((line) => /event|backfill|state/.test(line) && !line.startsWith('PUT')))(
      'nor of an event in a room that its users are in: %s',
      async (line) => {
        await expectAlike(asking(line, root), { ...real, roomId: shared }, { ...made, roomId: shared })
      },
    )
  })
})
