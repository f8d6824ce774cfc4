import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { crossSigner, deviceMaker } from '../keys/key-maker.ts'
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
