import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { goes, openPeer, type Peer } from '../federation/hostile/peer.ts'
import { type Account, createRoom, type Json, sendText } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'

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
const F1 = '/_matrix/federation/v1'
const there = () => ({ name: home.name, url: home.server.baseUrl })
const ask = (method: string, uri: string, body?: object) =>
  peer.ask(there(), method, uri, body && { body: body as JsonObject })

describe('a server in a room whose access list shuts it out (seed 3, "Server ACLs")', () => {
  let room: string
  let said: string

  beforeAll(async () => {
    room = await createRoom(home.api, alice.token, { preset: 'public_chat', room_version: '11' })
    await goes(peer, there(), 'join', room)
    said = await sendText(home.api, alice.token, room, 'said', 'hello')
    const body = { allow: ['*'], deny: ['localhost'] }
    await home.api.call('PUT', `/rooms/${enc(room)}/state/m.room.server_acl`, { token: alice.token, body })
  })

  const member = (content: Json, state_key: string): Json => ({
    ...{ type: 'm.room.member', room_id: room, sender: peer.eve, state_key, content, origin_server_ts: 1 },
    ...{ depth: 9, prev_events: [said], auth_events: [] },
  })
  const invitation = () => peer.sign('11', member({ membership: 'invite' }, alice.userId))
  const signed = () => ({ mxid: peer.eve, token: 'x', signatures: { 'id.test': { 'ed25519:0': 'x' } } })
  const claim = () => ({
    ...{ type: 'm.room.member', room_id: room, sender: alice.userId, state_key: peer.eve },
    content: { membership: 'invite', third_party_invite: { display_name: 'Eve', signed: signed() } },
  })
  const asked: readonly [string, () => [string, string, object?]][] = [
    ['state', () => ['GET', `v1/state/${enc(room)}?event_id=${enc(said)}`]],
    ['state_ids', () => ['GET', `v1/state_ids/${enc(room)}?event_id=${enc(said)}`]],
    ['backfill', () => ['GET', `v1/backfill/${enc(room)}?v=${enc(said)}&limit=3`]],
    ['event_auth', () => ['GET', `v1/event_auth/${enc(room)}/${enc(said)}`]],
    ['event', () => ['GET', `v1/event/${enc(said)}`]],
    ['timestamp_to_event', () => ['GET', `v1/timestamp_to_event/${enc(room)}?ts=1&dir=f`]],
    [
      'get_missing_events',
      () => ['POST', `v1/get_missing_events/${enc(room)}`, { earliest_events: [], latest_events: [said] }],
    ],
    ['make_join', () => ['GET', `v1/make_join/${enc(room)}/${enc(peer.eve)}?ver=11`]],
    ['make_leave', () => ['GET', `v1/make_leave/${enc(room)}/${enc(peer.eve)}`]],
    ['make_knock', () => ['GET', `v1/make_knock/${enc(room)}/${enc(peer.eve)}?ver=11`]],
    ['send_join', () => ['PUT', `v2/send_join/${enc(room)}/${enc(said)}`, {}]],
    ['send_leave', () => ['PUT', `v2/send_leave/${enc(room)}/${enc(said)}`, {}]],
    ['send_knock', () => ['PUT', `v1/send_knock/${enc(room)}/${enc(said)}`, {}]],
    [
      'invite',
      () => {
        const { pdu, eventId } = invitation()
        return ['PUT', `v2/invite/${enc(room)}/${enc(eventId)}`, { room_version: '11', event: pdu }]
      },
    ],
    ['exchange_third_party_invite', () => ['PUT', `v1/exchange_third_party_invite/${enc(room)}`, claim()]],
  ]

  it.each(asked)('is refused: 403 M_FORBIDDEN (%s)', async (_, request) => {
    const [method, path, body] = request()
    const answer = await ask(method, `/_matrix/federation/${path}`, body)
    expect([answer.status, answer.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
  })

  it('is told so of each of its events, and nobody is told who types there', async () => {
    const since = (await home.api.call('GET', '/sync?timeout=0', { token: alice.token })).next_batch
    const event = peer.sign('11', { ...member({ membership: 'join', displayname: 'Eve' }, peer.eve), depth: 10 })
    const edus = [{ edu_type: 'm.typing', content: { room_id: room, user_id: peer.eve, typing: true } }]
    const body = { origin: peer.name, origin_server_ts: 1, pdus: [event.pdu], edus }
    const answer = await ask('PUT', `${F1}/send/shut-out`, body)
    expect(answer.status).toBe(200)
    expect(answer.body.pdus).toEqual({ [event.eventId]: { error: expect.stringContaining('access list') } })
    const news = await home.api.call('GET', `/sync?timeout=0&since=${since}`, { token: alice.token })
    expect(news.rooms?.join?.[room]).toBeUndefined()
  })
})
