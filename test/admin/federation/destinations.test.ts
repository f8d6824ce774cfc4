import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, createRoom, type Json, sendText } from '../../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { json, proxyTo } from '../../support/tls-server.ts'
import { waitUntil } from '../../support/wait.ts'
import { ADMIN, registerBySecret, SECRET } from '../office.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let boss: Account
let near: Account
let room: string

const enc = encodeURIComponent
const ask = (method: string, path: string, token = boss.token) =>
  alpha.api.request(method, `${ADMIN}/v1/federation/destinations${path}`, { token })
const one = async () => (await ask('GET', `/${enc(beta.name)}`)).body

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open({ registration: { shared_secret: SECRET } }), street.open()])
  boss = await registerBySecret(alpha.api, 'boss', true)
  near = await alpha.person('near')
  const far = await beta.person('far')
  room = await createRoom(alpha.api, near.token, { preset: 'public_chat' })
  await beta.api.call('POST', `/join/${enc(room)}?server_name=${enc(alpha.name)}`, { token: far.token, body: {} })
})

afterAll(() => street.close())

describe('destinations', () => {
  test('are listed, found and refused as asked', async () => {
    const { status, body } = await ask('GET', '')
    expect([status, body.total]).toEqual([200, 1])
    expect(body.destinations[0]).toMatchObject({ destination: beta.name, failure_ts: null, retry_interval: 0, lag: 0 })
    expect((await ask('GET', '?destination=nowhere')).body.total).toBe(0)
    expect((await ask('GET', '?limit=0')).body.destinations).toEqual([])
    expect((await ask('GET', '?order_by=nonsense')).body.errcode).toBe('M_INVALID_PARAM')
    expect((await ask('GET', '', near.token)).status).toBe(403)
    const unknown = await ask('GET', '/nobody.example.org')
    expect([unknown.status, unknown.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
    const own = await ask('GET', `/${enc(alpha.name)}`)
    expect([own.status, own.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
  })

  test('name the rooms that they are in', async () => {
    const { body } = await ask('GET', `/${enc(beta.name)}/rooms`)
    expect([body.total, body.rooms.map(({ room_id }: Json) => room_id)]).toEqual([1, [room]])
    expect(body.rooms[0].stream_ordering).toBeGreaterThan(0)
    expect((await ask('GET', `/${enc(beta.name)}/rooms?from=1`)).body.rooms).toEqual([])
  })

  test('say in words why they lag behind, and are tried again at once', async () => {
    const quiet = await ask('POST', `/${enc(beta.name)}/reset_connection`)
    expect([quiet.status, quiet.body.errcode]).toEqual([400, 'M_UNKNOWN'])
    beta.front.handler = json({ errcode: 'M_UNKNOWN', error: 'Away.' }, 503)
    await sendText(alpha.api, near.token, room, 'lost', 'is anybody there?')
    const failing = await waitUntil('a failure', async () => {
      const is = await one()
      return is.failures > 0 && is
    })
    expect(failing.last_error).toContain('it answered 503')
    expect(failing.failure_ts).toBeGreaterThan(0)
    expect(failing.retry_last_ts).toBeGreaterThanOrEqual(failing.failure_ts)
    expect(failing.retry_interval).toBeGreaterThan(0)
    expect(failing.lag).toBeGreaterThan(0)
    beta.front.handler = proxyTo(beta.server.baseUrl)
    expect((await ask('POST', `/${enc(beta.name)}/reset_connection`)).status).toBe(200)
    await waitUntil('the end of it', async () => (await one()).failures === 0)
    expect(await one()).toMatchObject({ last_error: null, failure_ts: null, lag: 0 })
  })
})
