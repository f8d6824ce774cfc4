import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { crossSigner, deviceMaker } from '../keys/key-maker.ts'
import { type Account, type Json, login, PASSWORD } from '../support/api.ts'
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
let room: string
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
  room = (await alpha.api.call('POST', '/createRoom', { token: alice.token, body })).room_id
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

const sync = (at: Neighbour, { token }: Account, since?: string): Promise<Json> =>
  at.api.call('GET', `/sync?timeout=0${since === undefined ? '' : `&since=${since}`}`, { token })

const rekey = (device = deviceMaker(bob)) =>
  beta.api.call('POST', '/keys/upload', { token: bob.token, body: { device_keys: device.identity() } })

async function changedFor(at: Neighbour, who: Account, since: string, whose: Account): Promise<void> {
  await waitUntil(`news of ${whose.userId}`, async () => {
    const { device_lists: lists } = await sync(at, who, since)
    return lists?.changed?.includes(whose.userId)
  })
}

function say(edus: JsonObject[], to: Neighbour = alpha) {
  const body = { origin: stranger.name, origin_server_ts: Date.now(), pdus: [], edus }
  const path = `/_matrix/federation/v1/send/s${sent++}`
  return stranger.ask({ name: to.name, url: to.server.baseUrl }, 'PUT', path, { body })
}

const updateOf = (userId: string) => ({
  edu_type: 'm.device_list_update',
  content: { user_id: userId, device_id: 'D', stream_id: 5, prev_id: [4] },
})

const keptAt = async (at: Neighbour) =>
  (await at.server.database.db.query<{ json: string }>('SELECT json FROM federation_edu ORDER BY edu_nid')).map(
    ({ json }) => JSON.parse(json) as Json,
  )

describe('a device of a user of another server that changes its keys', () => {
  it('is news for those who share a room, and the keys that they ask for are the new ones', async () => {
    const { next_batch: since } = await sync(alpha, alice)
    const device = deviceMaker(bob)
    await rekey(device)
    await changedFor(alpha, alice, since, bob)
    const body = { device_keys: { [bob.userId]: [] } }
    const { device_keys: keys } = await alpha.api.call('POST', '/keys/query', { token: alice.token, body })
    expect(keys[bob.userId][bob.deviceId].keys).toEqual(device.identity().keys)
  })

  it('is news also when it is a cross-signing key', async () => {
    const { next_batch: first } = await sync(alpha, alice)
    const signer = crossSigner(bob.userId)
    await beta.api.call('POST', '/keys/device_signing/upload', { token: bob.token, body: signer.body() })
    await changedFor(alpha, alice, first, bob)
  })

  it('is told once, as it is by then, when the other server was away, over a restart', async () => {
    const { handler } = alpha.front
    alpha.front.handler = (_request, response) => {
      response.writeHead(502).end()
    }
    const { next_batch: since } = await sync(alpha, alice)
    const device = deviceMaker(bob)
    for (const each of [deviceMaker(bob), deviceMaker(bob), device]) await rekey(each)
    await beta.server.restart()
    const kept = await keptAt(beta)
    expect(kept.map(({ edu_type }) => edu_type)).toEqual(['m.device_list_update', 'm.signing_key_update'])
    expect(kept[0].content).toMatchObject({ device_id: bob.deviceId, keys: device.identity() })
    // Of one that it names nobody there has heard: they ask for the whole list.
    expect(kept[0].content.prev_id[0]).toBeLessThan(kept[0].content.stream_id)
    expect(Object.keys(kept[1].content).sort()).toEqual(['master_key', 'self_signing_key', 'user_id'])
    alpha.front.handler = handler
    await alpha.api.call('GET', `/profile/${bob.userId}`, { token: alice.token })
    await changedFor(alpha, alice, since, bob)
    await waitUntil('nothing kept', async () => (await keptAt(beta)).length === 0)
  })

  it('is no news for a server that shares no room', async () => {
    const { next_batch: since } = await sync(gamma, carol)
    gamma.front.requests.length = 0
    const { next_batch: before } = await sync(alpha, alice)
    await rekey()
    await changedFor(alpha, alice, before, bob)
    expect(gamma.front.requests.filter(({ url }) => url.includes('/send/'))).toEqual([])
    expect((await sync(gamma, carol, since)).device_lists?.changed ?? []).toEqual([])
  })

  it('is told by its own server alone', async () => {
    // What the tests before changed may still be on its way.
    await waitUntil('nothing kept', async () => (await keptAt(beta)).length === 0)
    const { next_batch: since } = await sync(alpha, alice)
    const mal = `@mal:${stranger.name}`
    const forged = [bob.userId, alice.userId, mal, 'nobody'].map(updateOf)
    expect((await say(forged)).status).toBe(200)
    expect((await sync(alpha, alice, since)).device_lists.changed).toEqual([])
    const keys = { edu_type: 'm.signing_key_update', content: { user_id: bob.userId, master_key: {} } }
    expect((await say([keys, { edu_type: 'm.device_list_update', content: {} }])).status).toBe(200)
    expect((await sync(alpha, alice, since)).device_lists.changed).toEqual([])
  })

  it('is no news any more for those who have left', async () => {
    await beta.api.call('POST', `/rooms/${enc(room)}/leave`, { token: bob.token, body: {} })
    await waitUntil('the leave', async () => {
      const { joined } = await alpha.api.call('GET', `/rooms/${enc(room)}/joined_members`, { token: alice.token })
      return !(bob.userId in joined)
    })
    const { handler } = alpha.front
    alpha.front.handler = (_request, response) => {
      response.writeHead(502).end()
    }
    await rekey()
    expect(await keptAt(beta)).toEqual([])
    alpha.front.handler = handler
  })
})

const joinAt = (at: Neighbour, { token }: Account, where: string, via: Neighbour) =>
  at.api.call('POST', `/join/${enc(where)}?server_name=${enc(via.name)}`, { token, body: {} })

const updatesTo = (at: Neighbour): Json[] =>
  at.front.requests
    .filter(({ method, url }) => method === 'PUT' && url.includes('/send/'))
    .flatMap(({ body }) => (JSON.parse(body.toString()) as Json).edus ?? [])
    .filter(({ edu_type }: Json) => edu_type === 'm.device_list_update')

test('B3: a user who joins a room that brings new servers is announced to them, once', async () => {
  const dora = await beta.person('dora')
  const keys = deviceMaker(dora).identity()
  await beta.api.call('POST', '/keys/upload', { token: dora.token, body: { device_keys: keys } })
  const body = { preset: 'public_chat' }
  const rooms: string[] = []
  for (let i = 0; i < 2; i++) {
    rooms.push((await gamma.api.call('POST', '/createRoom', { token: carol.token, body })).room_id)
  }
  gamma.front.requests.length = 0
  await joinAt(beta, dora, rooms[0]!, gamma)
  const [update] = await waitUntil('the announcement', async () => {
    const found = updatesTo(gamma)
    return found.length > 0 ? found : undefined
  })
  // Without a version before it, the whole list has to be asked for.
  expect(update.content).toMatchObject({ user_id: dora.userId, device_id: dora.deviceId, prev_id: [] })
  await waitUntil('nothing kept', async () => (await keptAt(beta)).length === 0)
  gamma.front.requests.length = 0
  await joinAt(beta, dora, rooms[1]!, gamma)
  await beta.api.call('PUT', `/rooms/${enc(rooms[1]!)}/send/m.room.message/last`, { token: dora.token, body: {} })
  await waitUntil('the message', async () =>
    gamma.front.requests.some(
      ({ url, body: sentBody }) => url.includes('/send/') && sentBody.includes('m.room.message'),
    ),
  )
  expect(updatesTo(gamma)).toEqual([])
})

test('B3: a user who joins is announced to the new servers after a crash right after the join', async () => {
  const frank = await beta.person('frank')
  const keys = { device_keys: deviceMaker(frank).identity() }
  await beta.api.call('POST', '/keys/upload', { token: frank.token, body: keys })
  const body = { preset: 'public_chat' }
  const { room_id: hall } = await gamma.api.call('POST', '/createRoom', { token: carol.token, body })
  const query = (sql: string) => beta.server.database.db.query<Json>(sql)
  await waitUntil('nothing kept', async () => (await keptAt(beta)).length === 0)
  // What is written after the commit of the join is lost.
  await query('CREATE SEQUENCE lost')
  await query(`CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_TABLE_NAME = 'federation_sent' THEN RETURN NULL; END IF;
      PERFORM nextval('lost');
      RAISE EXCEPTION 'the power is off';
    END $$`)
  for (const table of ['federation_edu', 'federation_sent']) {
    await query(`CREATE TRIGGER lose BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION lose()`)
  }
  await joinAt(beta, frank, hall, gamma)
  await waitUntil('the loss', async () => (await query('SELECT is_called FROM lost'))[0]!.is_called)
  gamma.front.requests.length = 0
  await query('DROP TRIGGER lose ON federation_edu')
  await beta.server.restart()
  await query('DROP FUNCTION lose() CASCADE')
  const [update] = await waitUntil('the announcement', async () => {
    // Those who joined in the seconds before it are announced once more.
    const found = updatesTo(gamma).filter(({ content }) => content.user_id === frank.userId)
    return found.length > 0 ? found : undefined
  })
  expect(update.content).toMatchObject({ device_id: frank.deviceId, prev_id: [] })
})

test('B3: a user who leaves, gets other keys and comes back is news for users of another server', async () => {
  const erin = await beta.person('erin')
  const body = { preset: 'public_chat' }
  const { room_id: hall } = await alpha.api.call('POST', '/createRoom', { token: alice.token, body })
  const publish = () =>
    beta.api.call('POST', '/keys/upload', { token: erin.token, body: { device_keys: deviceMaker(erin).identity() } })
  const isIn = (wanted: boolean) =>
    waitUntil('erin', async () => {
      const { joined } = await alpha.api.call('GET', `/rooms/${enc(hall)}/joined_members`, { token: alice.token })
      return erin.userId in joined === wanted
    })
  await publish()
  await joinAt(beta, erin, hall, alpha)
  await isIn(true)
  const { next_batch: since } = await sync(alpha, alice)
  await beta.api.call('POST', `/rooms/${enc(hall)}/leave`, { token: erin.token, body: {} })
  await isIn(false)
  await publish()
  await joinAt(beta, erin, hall, alpha)
  await isIn(true)
  const { device_lists: lists } = await sync(alpha, alice, since)
  expect(lists).toEqual({ changed: [erin.userId], left: [] })
})

test('B19: a device without keys is announced when it logs in, is renamed and is removed', async () => {
  const fay = await beta.person('fay')
  const body = { preset: 'public_chat' }
  const { room_id: shared } = await alpha.api.call('POST', '/createRoom', { token: alice.token, body })
  await joinAt(beta, fay, shared, alpha)
  await waitUntil('fay', async () => {
    const { joined } = await alpha.api.call('GET', `/rooms/${enc(shared)}/joined_members`, { token: alice.token })
    return fay.userId in joined
  })
  const news = () => updatesTo(alpha).flatMap(({ content }) => (content.user_id === fay.userId ? [content] : []))
  /** The update that follows, when alice's sync tells her too. */
  const nextUpdate = async (act: () => Promise<unknown>): Promise<Json> => {
    const before = news().length
    const { next_batch: since } = await sync(alpha, alice)
    await act()
    await changedFor(alpha, alice, since, fay)
    expect(news().length).toBe(before + 1)
    return news()[before]
  }
  const logIn = { type: 'm.login.password', user: fay.userId, password: PASSWORD }
  let second!: Json
  const made = await nextUpdate(async () => {
    second = await beta.api.call('POST', '/login', { body: { ...logIn, initial_device_display_name: 'Phone' } })
  })
  const about = { user_id: fay.userId, device_id: second.device_id }
  expect(made).toEqual({ ...about, stream_id: made.stream_id, prev_id: [], device_display_name: 'Phone' })
  const asSecond = (method: string, path: string, sent: object) =>
    beta.api.call(method, path, { token: second.access_token, body: sent })
  const renamed = await nextUpdate(() => asSecond('PUT', `/devices/${second.device_id}`, { display_name: 'Tablet' }))
  const expected = { ...about, stream_id: renamed.stream_id, prev_id: [made.stream_id], device_display_name: 'Tablet' }
  expect(renamed).toEqual(expected)
  const removed = await nextUpdate(() => asSecond('POST', '/logout', {}))
  expect(removed).toEqual({ ...about, stream_id: removed.stream_id, prev_id: [renamed.stream_id], deleted: true })
})

test('B19: the list of devices for other servers leaves out one without keys, and is as new as the word of it', async () => {
  const gil = await beta.person('gil')
  const path = `/_matrix/federation/v1/user/devices/${gil.userId}`
  const list = async () => (await stranger.ask({ name: beta.name, url: beta.server.baseUrl }, 'GET', path)).body
  const body = { device_keys: deviceMaker(gil).identity() }
  await beta.api.call('POST', '/keys/upload', { token: gil.token, body })
  const before = await list()
  await login(beta.api, gil.userId)
  const after = await list()
  expect(after.devices).toEqual(before.devices)
  expect(after.devices.map(({ device_id }: Json) => device_id)).toEqual([gil.deviceId])
  expect(after.stream_id).toBeGreaterThan(before.stream_id)
})
