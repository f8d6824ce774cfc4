import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { type Account, sendText } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger, type SignedAsk, type Stranger } from '../support/stranger.ts'

const F = '/_matrix/federation'
const enc = encodeURIComponent

let street: Neighbourhood
let home: Neighbour
let stranger: Stranger
let alice: Account
let room: string

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  stranger = await openStranger(street.authority)
  alice = await home.person('alice')
  room = (await home.api.call('POST', '/createRoom', { token: alice.token, body: { preset: 'private_chat' } })).room_id
  await sendText(home.api, alice.token, room, 'secret', 'secret')
})

afterAll(async () => {
  await stranger.close()
  await street.close()
})

const ask = (method: string, uri: string, how?: SignedAsk) =>
  stranger.ask({ name: home.name, url: home.server.baseUrl }, method, uri, how)
const outcome = ({ status, body }: { status: number; body: { errcode?: string } }) => [status, body.errcode]
const profile = () => `${F}/v1/query/profile?user_id=${enc(alice.userId)}`
const transaction = (): JsonObject => ({ origin: stranger.name, origin_server_ts: 1, pdus: [], edus: [] })

describe('a request of another server', () => {
  it('is answered when its signature is good, under both roots', async () => {
    expect(await ask('GET', profile())).toMatchObject({ status: 200 })
    expect(await ask('GET', profile().replace('_matrix', '_proto'))).toMatchObject({ status: 200 })
    expect(await ask('PUT', `${F}/v1/send/1`, { body: transaction() })).toEqual({ status: 200, body: { pdus: {} } })
  })

  it('with a body that is not canonical JSON is the same request', async () => {
    const body = transaction()
    const sent = JSON.stringify({ pdus: [], edus: [], origin: stranger.name, origin_server_ts: 1 }, null, 2)
    expect(await ask('PUT', `${F}/v1/send/2`, { body, sent })).toMatchObject({ status: 200 })
  })

  it('A1: is checked over the bytes that came, of any length, and written anew only up to a length', async () => {
    const large = { ...transaction(), 'org.example.filler': 'x'.repeat(5 * 1024 * 1024) }
    expect(await ask('PUT', `${F}/v1/send/large`, { body: large })).toEqual({ status: 200, body: { pdus: {} } })
    const sent = JSON.stringify(large, null, 2)
    expect(outcome(await ask('PUT', `${F}/v1/send/spaced`, { body: large, sent }))).toEqual([401, 'M_UNAUTHORIZED'])
  })

  it('A1: with a signature that is made up is not even read as JSON when its body is long', async () => {
    const sent = 'x'.repeat(5 * 1024 * 1024)
    const answer = await ask('PUT', `${F}/v1/send/none`, { body: transaction(), sent })
    expect(outcome(answer)).toEqual([401, 'M_UNAUTHORIZED'])
  })

  it('may not say for whom it is, and may say more than is known', async () => {
    const good = signedHeader(stranger.key, stranger.name)
    expect(await rawAsk(profile(), [good.replace(/destination="[^"]*",/, '')])).toBe(200)
    expect(await rawAsk(profile(), [`${good},algorithm="new",more=1`])).toBe(200)
    const uri = `${profile()}&org.example.new=1&field=displayname`
    expect(await ask('GET', uri)).toMatchObject({ status: 200 })
    const body = { ...transaction(), 'org.example.new': [1] }
    expect(await ask('PUT', `${F}/v1/send/more`, { body })).toEqual({ status: 200, body: { pdus: {} } })
  })

  it('to learn which release runs needs no signature, under every path', async () => {
    const paths = ['/_matrix/federation/v1/version', '/_matrix/federation/version', '/_proto/federation/version']
    for (const path of [...paths, '/_proto/federation/v1/version']) {
      expect(await home.api.request('GET', path)).toEqual({
        status: 200,
        body: { server: { name: 'Hearth', version: '0.0.0-test' } },
      })
    }
  })

  const other = () => signingKeyFromSeed('ed25519:stranger', randomBytes(32))
  it.each<[string, () => SignedAsk]>([
    ['no signature', () => ({ authorization: undefined })],
    ['a token instead', () => ({ authorization: `Bearer ${alice.token}` })],
    ['half a header', () => ({ authorization: 'X-Matrix origin="localhost"' })],
    ['a key that is not its own', () => ({ key: other() })],
    ['a key that nobody knows', () => ({ key: signingKeyFromSeed('ed25519:other', randomBytes(32)) })],
    ['the name of another server', () => ({ origin: home.name })],
    ['a name that is none', () => ({ origin: 'a b' })],
    ['another destination', () => ({ destination: 'localhost:1' })],
    ['the signature of another path', () => ({ uri: `${F}/v1/version` })],
  ])('with %s: 401 M_UNAUTHORIZED', async (_name, how) => {
    expect(outcome(await ask('GET', profile(), how()))).toEqual([401, 'M_UNAUTHORIZED'])
  })

  it('with another body than was signed: 401', async () => {
    const sent = JSON.stringify({ ...transaction(), origin_server_ts: 2 })
    expect(outcome(await ask('PUT', `${F}/v1/send/3`, { body: transaction(), sent }))).toEqual([401, 'M_UNAUTHORIZED'])
  })

  it('with several signatures of one server is good by one of them, and not of two servers', async () => {
    const good = signedHeader(stranger.key, stranger.name)
    const bad = good.replace(/sig="./, 'sig="A')
    const answer = (headers: string[]) => rawAsk(profile(), headers)
    expect(await answer([bad, good])).toBe(200)
    expect(await answer([good, good.replace(stranger.name, 'localhost:1')])).toBe(401)
    expect(await answer(Array(6).fill(good))).toBe(401)
  })
})

function signedHeader(key: Stranger['key'], origin: string): string {
  const text = JSON.stringify({ destination: home.name, method: 'GET', origin, uri: profile() })
  return `X-Matrix origin="${origin}",destination="${home.name}",key="${key.keyId}",sig="${key.sign(text)}"`
}

async function rawAsk(uri: string, authorizations: string[]): Promise<number> {
  const { request } = await import('node:http')
  return new Promise((resolve, reject) => {
    const asking = request(home.server.baseUrl + uri, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
    asking.setHeader('authorization', authorizations)
    asking.on('error', reject).end()
  })
}

describe('a server that is not in a room', () => {
  it('speaks for no users of others', async () => {
    const uri = `${F}/v1/make_join/${enc(room)}/${enc('@x:elsewhere.test')}?ver=12`
    expect(outcome(await ask('GET', uri))).toEqual([403, 'M_FORBIDDEN'])
  })
})

describe('a transaction', () => {
  it('has at most 50 PDUs and 100 EDUs', async () => {
    const many = { ...transaction(), pdus: Array(51).fill({}) }
    expect(outcome(await ask('PUT', `${F}/v1/send/51`, { body: many }))).toEqual([400, 'M_TOO_LARGE'])
    const edus = { ...transaction(), edus: Array(101).fill({}) }
    expect(outcome(await ask('PUT', `${F}/v1/send/101`, { body: edus }))).toEqual([400, 'M_TOO_LARGE'])
  })

  it('of nonsense is answered', async () => {
    const pdus = [1, null, 'x', {}, { room_id: room }, { room_id: '!nowhere:x', event_id: '$x:y' }, { room_id: 7 }]
    const body = {
      ...transaction(),
      pdus,
      edus: [1, {}, { edu_type: 'm.typing' }, { edu_type: '__proto__', content: {} }],
    }
    const first = await ask('PUT', `${F}/v1/send/nonsense`, { body })
    expect(first).toMatchObject({ status: 200, body: { pdus: { '$x:y': { error: expect.any(String) } } } })
    expect(await ask('PUT', `${F}/v1/send/nonsense`, { body })).toEqual(first)
  })

  it('that was answered is answered again, whatever it holds by now, also after a start', async () => {
    const body = { ...transaction(), pdus: [{ room_id: '!nowhere:x', event_id: '$a:b' }] }
    const first = await ask('PUT', `${F}/v1/send/again`, { body })
    await home.server.restart()
    expect(await ask('PUT', `${F}/v1/send/again`, { body: transaction() })).toEqual(first)
  })
})
