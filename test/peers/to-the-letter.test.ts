import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId, UserId } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import { signedEventText } from '../../src/core/signing/event-hash.ts'
import { signJson } from '../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed, verifySignature } from '../../src/core/signing/key.ts'
import { goes, handOver, openPeer, type Peer, proposed } from '../federation/hostile/peer.ts'
import { deviceMaker } from '../keys/key-maker.ts'
import { type Account, createRoom, type Json, login, sendText } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { json } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

let street: Neighbourhood
let home: Neighbour
/** Honest here: it says what a test has it say. */
let peer: Peer
let alice: Account
let open: string
let closed: string

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  peer = await openPeer(street.authority)
  alice = await home.person('alice')
  open = await createRoom(home.api, alice.token, { preset: 'public_chat' })
  closed = await createRoom(home.api, alice.token, { preset: 'private_chat' })
})

afterAll(async () => {
  await peer?.close()
  await street?.close()
})

const enc = encodeURIComponent
const hasGoodSignature = (version: string, event: Json): boolean => {
  const { keyId, publicKey } = home.signingKey
  const signature = event?.signatures?.[home.name]?.[keyId]
  return verifySignature(publicKey, signedEventText(roomVersion(version)!, event), signature)
}
const F1 = '/_matrix/federation/v1'
const there = () => ({ name: home.name, url: home.server.baseUrl })
const ask = (method: string, uri: string, body?: object) =>
  peer.ask(there(), method, uri, body && { body: body as JsonObject })
const make = async (step: string, room: string) => {
  const { status, body } = await ask('GET', `${F1}/make_${step}/${enc(room)}/${enc(peer.eve)}?ver=11&ver=12`)
  return [status, body.errcode]
}
const UNKNOWN = '!nowhere'

describe('a server that was never in a room', () => {
  it('is told that its user is not in it who would leave, be there such a room or not (seed 3, make_leave)', async () => {
    for (const room of [open, closed, UNKNOWN]) expect(await make('leave', room)).toEqual([403, 'M_FORBIDDEN'])
  })

  it('is told that a public room takes no knocks, and of a closed one nothing (make_knock, make_join)', async () => {
    expect(await make('knock', open)).toEqual([403, 'M_FORBIDDEN'])
    for (const step of ['knock', 'join'])
      for (const room of [closed, UNKNOWN]) expect(await make(step, room)).toEqual([404, 'M_NOT_FOUND'])
  })

  it('is told that the access list of a public room shuts it out: 403 M_FORBIDDEN (seed 3, "Server ACLs")', async () => {
    const acl = { type: 'm.room.server_acl', state_key: '', content: { allow: ['*'], deny: ['localhost'] } }
    const [shut, hidden] = await Promise.all(
      ['public_chat', 'private_chat'].map((preset) =>
        createRoom(home.api, alice.token, { preset, initial_state: [acl] }),
      ),
    )
    expect(await make('join', shut!)).toEqual([403, 'M_FORBIDDEN'])
    expect(await make('join', hidden!)).toEqual([404, 'M_NOT_FOUND'])
  })
})

describe('a user who would join through other servers', () => {
  it.each([
    [404, 'M_NOT_FOUND', '', 403, 'M_FORBIDDEN'],
    [403, 'M_FORBIDDEN', ' and another is away', 403, 'M_FORBIDDEN'],
    [400, 'M_UNABLE_TO_GRANT_JOIN', ' and another is away', 400, 'M_UNABLE_TO_GRANT_JOIN'],
  ])('is told, where one says %i %s%s: %i %s', async (status, errcode, away, ...shown) => {
    peer.answer('make_join', json({ errcode, error: 'no' }, status))
    const other = away && '&server_name=nowhere.invalid'
    const path = `/join/${enc('!elsewhere')}?server_name=${peer.name}${other}`
    const answer = await home.api.request('POST', path, { token: alice.token, body: {} })
    peer.repent()
    expect([answer.status, answer.body.errcode]).toEqual(shown)
  })
})

describe('a server that joins', () => {
  it('gets a template that names who made it, and a state as of before (make_join, send_join)', async () => {
    const room = await createRoom(home.api, alice.token, { preset: 'public_chat', room_version: '12' })
    const { body } = await proposed(peer, there(), 'join', room)
    expect(body.event).toMatchObject({ origin: home.name, room_id: room, sender: peer.eve, state_key: peer.eve })
    const join = peer.sign(body.room_version, body.event)
    const answer = (await handOver(peer, there(), 'join', join)).body
    expect(answer).toMatchObject({ origin: home.name, members_omitted: false, servers_in_room: [home.name] })
    const { event, state, auth_chain } = answer as { event: Json; state: Json[]; auth_chain: Json[] }
    expect(event.signatures).toHaveProperty([peer.name])
    expect(state.map(({ type, state_key }) => [type, state_key])).not.toContainEqual(['m.room.member', peer.eve])
    // What the join itself cites is in its chain, whether or not something else cites it.
    expect(auth_chain.map(({ type }) => type).sort()).toEqual([
      'm.room.create',
      'm.room.join_rules',
      'm.room.member',
      'm.room.power_levels',
    ])
  })
})

describe('a server in a room', () => {
  let room: string
  let said: string

  beforeAll(async () => {
    room = await createRoom(home.api, alice.token, { preset: 'public_chat', room_version: '11' })
    await goes(peer, there(), 'join', room)
    said = await sendText(home.api, alice.token, room, 'hello', 'hello')
  })

  it.each([
    [{}, [1, 2, 3, 4, 5, 6]],
    [{ min_depth: 4 }, [4, 5, 6]],
    [{ limit: 2 }, [5, 6]],
    [{ limit: 0 }, []],
  ])('gets missing events %j: those of depth %j, oldest first', async (wanted, depths) => {
    const body = { earliest_events: [], latest_events: [said], ...wanted }
    const answer = await ask('POST', `${F1}/get_missing_events/${enc(room)}`, body)
    expect(answer.body.events.map(({ depth }: Json) => depth)).toEqual(depths)
  })

  it.each([
    [3, [7, 6, 5]],
    [0, []],
  ])('gets up to %i events of history: those of depth %j, newest first', async (limit, depths) => {
    const answer = await ask('GET', `${F1}/backfill/${enc(room)}?v=${enc(said)}&limit=${limit}`)
    expect(answer.body.pdus.map(({ depth }: Json) => depth)).toEqual(depths)
  })

  it('is told of each event of a transaction that cannot be taken why, by its id', async () => {
    const draft = (extra: object): Json => ({
      ...{ type: 'm.room.message', room_id: room, sender: peer.eve, content: { body: 'x' }, origin_server_ts: 1 },
      ...{ depth: 9, prev_events: [said], auth_events: [], ...extra },
    })
    const unsigned = peer.sign('11', draft({}))
    const crowded = peer.sign('11', draft({ prev_events: Array.from({ length: 21 }, () => said) }))
    const pdus = [{ ...unsigned.pdu, signatures: {} }, 'no event', { room_id: room }, crowded.pdu]
    const body = { origin: peer.name, origin_server_ts: 1, pdus }
    const { status, body: answer } = await ask('PUT', `${F1}/send/refused`, body)
    expect(status).toBe(200)
    const refused = expect.objectContaining({ error: expect.any(String) })
    expect(answer.pdus).toMatchObject({ [unsigned.eventId]: refused, [crowded.eventId]: refused })
  })

  it.each(['origin', 'origin_server_ts', 'pdus'])(
    'has to say in a transaction: %s (seed 3, "Transaction")',
    async (key) => {
      const { [key]: _, ...body }: Json = { origin: peer.name, origin_server_ts: 1, pdus: [] }
      const answer = await ask('PUT', `${F1}/send/without-${key}`, body)
      expect([answer.status, answer.body.errcode]).toEqual([400, 'M_MISSING_PARAM'])
    },
  )
})

describe('what is handed over to another server', () => {
  it.each(['6', '11', '12'])(
    'names its origin in room version %s: an invitation, a join (InviteEvent, send_join)',
    async (version) => {
      peer.repent()
      const room = await createRoom(home.api, alice.token, { preset: 'private_chat', room_version: version })
      const path = `/rooms/${enc(room)}/invite`
      await home.api.call('POST', path, { token: alice.token, body: { user_id: peer.eve } })
      const theirs = peer.open({ version, name: `theirs${version}`, since: Date.now() })
      await home.api.call('POST', `/join/${enc(theirs.roomId)}?via=${peer.name}`, { token: alice.token, body: {} })
      const bodies = peer.front.requests.filter(({ method }) => method === 'PUT').map(({ body }) => JSON.parse(body))
      const handed: Json[] = bodies.map((body) => body.event ?? body).filter(({ content }) => content)
      for (const [where, membership] of Object.entries({ [room]: 'invite', [theirs.roomId]: 'join' })) {
        const one = handed.find(({ room_id, content }) => room_id === where && content.membership === membership)
        expect(one).toMatchObject({ origin: home.name })
      }
    },
  )

  it.each(['10', '12'])(
    'shows the room by whole events, its beginning among them, in room version %s (invite, send_knock)',
    async (version) => {
      peer.repent()
      const join_rules = { type: 'm.room.join_rules', state_key: '', content: { join_rule: 'knock' } }
      const body = { preset: 'private_chat', name: 'Shown', room_version: version, initial_state: [join_rules] }
      const room = await createRoom(home.api, alice.token, body)
      await home.api.call('POST', `/rooms/${enc(room)}/invite`, { token: alice.token, body: { user_id: peer.eve } })
      const invitation = peer.front.requests.find(({ url }) => url.includes('/v2/invite/'))!
      const template = (await proposed(peer, there(), 'knock', room, `@knocker:${peer.name}` as UserId)).body
      const knock = peer.sign(version, template.event)
      const { knock_room_state } = (await handOver(peer, there(), 'knock', knock)).body
      for (const shown of [JSON.parse(invitation.body).invite_room_state, knock_room_state]) {
        const create = shown.find(({ type }: Json) => type === 'm.room.create')
        expect(hasGoodSignature(version, create)).toBe(true)
        expect(shown).toContainEqual(
          expect.objectContaining({ type: 'm.room.name', state_key: '', auth_events: expect.any(Array) }),
        )
      }
    },
  )

  it('is not sent once more by a transaction: a join (send_join)', async () => {
    peer.repent()
    const theirs = peer.open({ version: '11', name: 'once', since: Date.now() })
    await home.api.call('POST', `/join/${enc(theirs.roomId)}?via=${peer.name}`, { token: alice.token, body: {} })
    await sendText(home.api, alice.token, theirs.roomId, 'once', 'hello')
    const sent = () =>
      peer.front.requests.flatMap(({ url, body }): Json[] => (url.includes('/v1/send/') ? JSON.parse(body).pdus : []))
    await waitUntil('the message', () => sent().some(({ type }) => type === 'm.room.message'))
    expect(sent().map(({ type, room_id }) => [type, room_id])).toEqual([['m.room.message', theirs.roomId]])
  })
})

describe('another server that does not take what it is handed', () => {
  const paths = () => peer.front.requests.map(({ url }) => url.split('/').slice(1, 5).join('/'))
  const invited = async (version: string): Promise<[number, string]> => {
    const room = await createRoom(home.api, alice.token, { preset: 'private_chat', room_version: version })
    const call = { token: alice.token, body: { user_id: peer.eve } }
    const { status, body } = await home.api.request('POST', `/rooms/${enc(room)}/invite`, call)
    return [status, body.errcode]
  }
  const old: readonly [string, number, Json][] = [
    ['404 in words of its proxy', 404, 'not found'],
    ['404 M_UNRECOGNIZED', 404, { errcode: 'M_UNRECOGNIZED', error: 'unknown' }],
    ['400', 400, { errcode: 'M_UNKNOWN', error: 'what?' }],
  ]

  it.each(old)(
    'with %s is asked by the first version, in rooms of old versions (seed 3, invite)',
    async (_, status, body) => {
      peer.repent()
      peer.answer('invite', json(body, status))
      expect(await invited('2')).toEqual([200, undefined])
      expect(paths().at(-1)).toBe('_matrix/federation/v1/invite')
      expect((await invited('11'))[0]).toBeGreaterThanOrEqual(400)
      expect(paths().at(-1)).not.toContain('v1')
    },
  )

  it.each([
    [404, 'M_UNRECOGNIZED'],
    [400, 'M_INVALID_PARAM'],
    [400, 'M_MISSING_PARAM'],
  ])('with %i %s has not refused the user: 502 (invite)', async (status, errcode) => {
    peer.repent()
    peer.answer('invite', json({ errcode, error: 'no' }, status))
    expect(await invited('11')).toEqual([502, 'M_UNKNOWN'])
    peer.repent()
  })
})

describe('a room that lets in who is in another', () => {
  it('says so to a server that is in the other, and that it does not let in who is not: 403 (make_join, send_join)', async () => {
    const space = await createRoom(home.api, alice.token, { preset: 'public_chat', room_version: '11' })
    const allow = [{ type: 'm.room_membership', room_id: space }]
    const rules = { type: 'm.room.join_rules', state_key: '', content: { join_rule: 'restricted', allow } }
    const options = { preset: 'private_chat', room_version: '11', initial_state: [rules] }
    const room = await createRoom(home.api, alice.token, options)
    expect((await make('join', room))[0]).toBe(404)
    await goes(peer, there(), 'join', space)
    const uri = `${F1}/make_join/${enc(room)}/${enc(`@other:${peer.name}`)}?ver=11`
    expect(await ask('GET', uri)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    const { event } = (await proposed(peer, there(), 'join', room)).body
    const { join_authorised_via_users_server: authoriser, ...content } = event.content
    expect(authoriser).toBe(alice.userId)
    const unauthorised = peer.sign('11', { ...event, content })
    const refused = await handOver(peer, there(), 'join', unauthorised)
    expect([refused.status, refused.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    const joined = await handOver(peer, there(), 'join', peer.sign('11', event))
    expect(Object.keys(joined.body.event.signatures).sort()).toEqual([home.name, peer.name].sort())
  })
})

describe('devices of a user who shares a room with a server (m.device_list_update)', () => {
  const updates = (): Json[] =>
    peer.front.requests
      .flatMap(({ url, body }) => (url.includes('/v1/send/') ? JSON.parse(body).edus : []))
      .flatMap(({ edu_type, content }) => (edu_type === 'm.device_list_update' ? [content] : []))
  const nextUpdate = async (act: () => Promise<unknown>): Promise<Json> => {
    const before = updates().length
    await act()
    return waitUntil('the update', () => updates()[before])
  }

  it('are told each by its name, each change with the one before it, and one that is gone as deleted', async () => {
    peer.repent()
    const bob = await home.person('bob')
    const room = await createRoom(home.api, bob.token, { preset: 'public_chat' })
    await goes(peer, there(), 'join', room)
    const upload = (who: Account) => async () => {
      const body = { device_keys: deviceMaker(who).identity() }
      await home.api.call('POST', '/keys/upload', { token: who.token, body })
    }
    const first = await nextUpdate(upload(bob))
    expect(first).toMatchObject({ user_id: bob.userId, device_id: bob.deviceId, prev_id: [], keys: expect.any(Object) })
    let last = first.stream_id
    const others: Account[] = []
    for (let i = 0; i < 2; i++) {
      const made = await nextUpdate(async () => others.push(await login(home.api, 'bob')))
      expect(made).toMatchObject({ device_id: others[i]!.deviceId, prev_id: [last] })
      last = made.stream_id
    }
    others.sort((a, b) => (a.deviceId < b.deviceId ? 1 : -1))
    for (const other of others) {
      const added = await nextUpdate(upload(other))
      expect(added).toMatchObject({ device_id: other.deviceId, prev_id: [last], keys: { device_id: other.deviceId } })
      last = added.stream_id
    }
    const [{ token, deviceId }] = others as [Account, Account]
    const gone = await nextUpdate(() => home.api.call('POST', '/logout', { token, body: {} }))
    expect(gone).toMatchObject({ device_id: deviceId, prev_id: [last], deleted: true })
    const list = await ask('GET', `${F1}/user/devices/${enc(bob.userId)}`)
    expect(list.body).toMatchObject({ user_id: bob.userId, stream_id: gone.stream_id })
    expect(list.body.devices.map(({ device_id }: Json) => device_id).sort()).toEqual(
      [bob.deviceId, others[1]!.deviceId].sort(),
    )
  })
})

describe('an invitation of another server', () => {
  it('that it takes back by a transaction is gone, and the event is said to be taken (send)', async () => {
    const theirs = peer.open({ version: '11', name: 'taken-back', since: Date.now() })
    const invite = theirs.member(alice.userId as UserId, 'invite', { sender: peer.eve })
    const path = `/_matrix/federation/v2/invite/${enc(theirs.roomId)}/${enc(invite)}`
    const eventOf = (id: EventId): Json => JSON.parse(theirs.texts.get(id)!)
    expect((await ask('PUT', path, { room_version: '11', event: eventOf(invite) })).status).toBe(200)
    const invited = async () =>
      Object.keys((await home.api.call('GET', '/sync?timeout=0', { token: alice.token })).rooms.invite)
    expect(await invited()).toContain(theirs.roomId)
    const kick = theirs.member(alice.userId as UserId, 'leave', { sender: peer.eve })
    const body = { origin: peer.name, origin_server_ts: 1, pdus: [eventOf(kick)] }
    expect((await ask('PUT', `${F1}/send/taken-back`, body)).body).toEqual({ pdus: { [kick]: {} } })
    expect(await invited()).not.toContain(theirs.roomId)
  })

  it('by address, whose identity server is away, is not exchanged for now: 502 (exchange_third_party_invite)', async () => {
    const key = signingKeyFromSeed('ed25519:0', randomBytes(32))
    const room = await createRoom(home.api, alice.token, { preset: 'private_chat' })
    const content = {
      display_name: 'e',
      public_key: key.publicKey,
      key_validity_url: 'https://nowhere.invalid/isvalid',
    }
    const path = `/rooms/${enc(room)}/state/m.room.third_party_invite/token`
    await home.api.call('PUT', path, { token: alice.token, body: content })
    const signed = signJson({ mxid: peer.eve, token: 'token' }, 'id.test', key)
    const answer = await ask('PUT', `${F1}/exchange_third_party_invite/${enc(room)}`, {
      ...{ type: 'm.room.member', room_id: room, sender: alice.userId, state_key: peer.eve },
      content: { membership: 'invite', third_party_invite: { display_name: 'e', signed } },
    })
    expect([answer.status, answer.body.errcode]).toEqual([502, 'M_UNKNOWN'])
    expect(answer.body.error).toContain('nowhere.invalid')
  })
})
