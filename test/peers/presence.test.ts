import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { ByteBudget } from '../../src/core/byte-budget.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { createPresenceNews } from '../../src/domain/federation/presence-news.ts'
import { createUserRooms } from '../../src/domain/sync/user-rooms.ts'
import { getJoinedOfSmallRooms } from '../../src/store/rooms/rooms.ts'
import type { Account, Json } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger, type Stranger } from '../support/stranger.ts'
import { waitUntil } from '../support/wait.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let gamma: Neighbour
let stranger: Stranger
let alice: Account
let bob: Account
let carol: Account
let sent = 0

const enc = encodeURIComponent

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta, gamma] = await Promise.all([street.open(), street.open(), street.open()])
  stranger = await openStranger(street.authority)
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
  carol = await gamma.person('carol')
  const body = { preset: 'public_chat' }
  const room = (await alpha.api.call('POST', '/createRoom', { token: alice.token, body })).room_id
  await beta.api.call('POST', `/join/${enc(room)}?server_name=${enc(alpha.name)}`, { token: bob.token, body: {} })
  await waitUntil('bob', async () => {
    const { joined } = await alpha.api.call('GET', `/rooms/${enc(room)}/joined_members`, { token: alice.token })
    return bob.userId in joined
  })
})

afterAll(async () => {
  await stranger.close()
  await street.close()
})

const is = (at: Neighbour, { userId, token }: Account, body: object) =>
  at.api.call('PUT', `/presence/${enc(userId)}/status`, { token, body })

async function presenceAt(at: Neighbour, { token }: Account, of: Account): Promise<Json | undefined> {
  const { presence } = await at.api.call('GET', '/sync?timeout=0&set_presence=offline', { token })
  return presence?.events.find(({ sender }: { sender: string }) => sender === of.userId)?.content
}

function say(push: JsonObject[], to: Neighbour = alpha) {
  const edus = [{ edu_type: 'm.presence', content: { push } }]
  const body = { origin: stranger.name, origin_server_ts: Date.now(), pdus: [], edus }
  const path = `/_matrix/federation/v1/send/s${sent++}`
  return stranger.ask({ name: to.name, url: to.server.baseUrl }, 'PUT', path, { body })
}

describe('presence', () => {
  it('is seen where a room is shared, and follows what the user says', async () => {
    await is(beta, bob, { presence: 'online', status_msg: 'here' })
    const seen = await waitUntil('bob', async () => {
      const content = await presenceAt(alpha, alice, bob)
      return content?.status_msg === 'here' ? content : undefined
    })
    expect(seen).toEqual({
      presence: 'online',
      status_msg: 'here',
      currently_active: true,
      last_active_ago: expect.any(Number),
    })
    const { next_batch: since } = await alpha.api.call('GET', '/sync?timeout=0', { token: alice.token })
    // What bob said first may be told once more, with a later time.
    const changes = async () => {
      for (let at = since; ; ) {
        const answer = await alpha.api.call('GET', `/sync?timeout=20000&since=${at}`, { token: alice.token })
        at = answer.next_batch
        const events: { content: { presence: string } }[] = answer.presence?.events ?? []
        if (events.some(({ content }) => content.presence === 'unavailable')) return events
      }
    }
    const waiting = changes()
    await is(beta, bob, { presence: 'unavailable' })
    expect(await waiting).toMatchObject([{ sender: bob.userId, content: { presence: 'unavailable' } }])
    const asked = await alpha.api.call('GET', `/presence/${enc(bob.userId)}/status`, { token: alice.token })
    expect(asked.presence).toBe('unavailable')
  })

  it('is told to nobody else', async () => {
    await is(gamma, carol, { presence: 'online', status_msg: 'alone' })
    gamma.front.requests.length = 0
    await is(beta, bob, { presence: 'online', status_msg: 'again' })
    await waitUntil('bob', async () => (await presenceAt(alpha, alice, bob))?.status_msg === 'again')
    expect(gamma.front.requests.filter(({ url }) => url.includes('/send/'))).toEqual([])
    expect(await presenceAt(alpha, alice, carol)).toBeUndefined()
  })

  it('is told by its own server alone, of users who share a room, in words that are known', async () => {
    const before = await presenceAt(alpha, alice, bob)
    const mal = `@mal:${stranger.name}`
    const pushed = [bob.userId, alice.userId, mal, 7].map((user_id) => ({
      user_id,
      presence: 'offline',
      status_msg: 'no',
    }))
    expect((await say([...pushed, { user_id: mal, presence: 'asleep' }, {}])).status).toBe(200)
    expect((await say(7 as never)).status).toBe(200)
    const { status_msg, presence } = (await presenceAt(alpha, alice, bob)) ?? {}
    expect({ status_msg, presence }).toEqual({ status_msg: before?.status_msg, presence: before?.presence })
    expect(await presenceAt(alpha, alice, alice)).not.toMatchObject({ status_msg: 'no' })
  })
})

const syncSince = (at: Neighbour, { token }: Account, since?: string): Promise<Json> =>
  at.api.call('GET', `/sync?timeout=0&set_presence=offline${since ? `&since=${since}` : ''}`, { token })

/** What one is told of another's presence in the syncs that follow a token. */
function sentAfter(at: Neighbour, who: Account, since: string, of: Account): Promise<Json> {
  let from = since
  return waitUntil(`presence of ${of.userId}`, async () => {
    const { presence, next_batch } = await syncSince(at, who, from)
    from = next_batch
    return presence?.events.find(({ sender }: Json) => sender === of.userId)?.content
  })
}

test('B8: who comes to share a room over federation is told how the others are, and they how they are', async () => {
  const dora = await gamma.person('dora')
  const erin = await beta.person('erin')
  await is(gamma, dora, { presence: 'online', status_msg: 'I was here' })
  await is(beta, erin, { presence: 'unavailable', status_msg: 'I come' })
  const body = { preset: 'public_chat' }
  const room = (await gamma.api.call('POST', '/createRoom', { token: dora.token, body })).room_id
  const [{ next_batch: doras }, { next_batch: erins }] = [await syncSince(gamma, dora), await syncSince(beta, erin)]
  await beta.api.call('POST', `/join/${enc(room)}?server_name=${enc(gamma.name)}`, { token: erin.token, body: {} })
  expect(await sentAfter(gamma, dora, doras, erin)).toMatchObject({ presence: 'unavailable', status_msg: 'I come' })
  expect(await sentAfter(beta, erin, erins, dora)).toMatchObject({ presence: 'online', status_msg: 'I was here' })
})

test('B8: a user of another server who comes into a further room is told there as they were heard of before', async () => {
  const fred = await alpha.person('fred')
  await is(beta, bob, { presence: 'online', status_msg: 'known' })
  await waitUntil('bob', async () => (await presenceAt(alpha, alice, bob))?.status_msg === 'known')
  const body = { preset: 'public_chat' }
  const room = (await alpha.api.call('POST', '/createRoom', { token: fred.token, body })).room_id
  const { next_batch: since } = await syncSince(alpha, fred)
  await beta.api.call('POST', `/join/${enc(room)}?server_name=${enc(alpha.name)}`, { token: bob.token, body: {} })
  expect(await sentAfter(alpha, fred, since, bob)).toMatchObject({ presence: 'online', status_msg: 'known' })
})

test('is told where a small room is shared, also if it is not in memory', async () => {
  const { db } = beta.server.database
  const bobs = await db.query<{ user_nid: number; room_nid: number }>(
    'SELECT user_nid, room_nid FROM room_member JOIN matrix_user USING (user_nid) WHERE user_id = $1',
    [bob.userId],
  )
  const sent: string[][] = []
  const news = createPresenceNews({
    db,
    clock: { now: () => Date.now() },
    registry: { peek: () => undefined },
    userRooms: createUserRooms({ db, budget: new ByteBudget(1_000_000) }),
    edu: (servers) => sent.push([...servers]),
  })
  const is = {
    userId: bob.userId,
    state: 'online',
    statusMessage: undefined,
    activeAt: 0,
    roomNids: undefined,
  } as const
  await news(bobs[0]!.user_nid, is as Parameters<typeof news>[1])
  expect(sent.map((servers) => servers.toSorted())).toEqual([[alpha.name, beta.name].toSorted()])
  const [{ room_nid: ofTwo }] = bobs as [(typeof bobs)[0]]
  expect((await getJoinedOfSmallRooms(db, [ofTwo], 2)).toSorted()).toEqual([alice.userId, bob.userId].toSorted())
  expect(await getJoinedOfSmallRooms(db, [ofTwo], 1)).toEqual([])
})
