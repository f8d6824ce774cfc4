import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { signJson } from '../../src/core/signing/json-signature.ts'
import { crossSigner, type DeviceMaker, deviceMaker } from '../keys/key-maker.ts'
import type { Account } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger, type Stranger } from '../support/stranger.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let stranger: Stranger
let alice: Account
let bob: Account
let maker: DeviceMaker

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  stranger = await openStranger(street.authority)
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
  maker = deviceMaker(bob)
  const body = { device_keys: maker.identity(), one_time_keys: maker.keys(2) }
  await beta.api.call('POST', '/keys/upload', { token: bob.token, body })
})

afterAll(async () => {
  await stranger.close()
  await street.close()
})

const query = (users: JsonObject, timeout = 5_000) =>
  alpha.api.call('POST', '/keys/query', { token: alice.token, body: { device_keys: users, timeout } })

const claim = (userId: string, deviceId: string) =>
  alpha.api.call('POST', '/keys/claim', {
    token: alice.token,
    body: { one_time_keys: { [userId]: { [deviceId]: 'signed_curve25519' } }, timeout: 5_000 },
  })

const toBeta = () => ({ name: beta.name, url: beta.server.baseUrl })

describe('keys of users of another server', () => {
  it('are told with their signatures', async () => {
    const { device_keys: keys, failures } = await query({ [bob.userId]: [] })
    expect(failures).toEqual({})
    expect(keys[bob.userId][bob.deviceId]).toMatchObject({ ...maker.identity(), unsigned: {} })
  })

  it('are given once, one by one', async () => {
    const claims = await Promise.all([1, 2, 3].map(() => claim(bob.userId, bob.deviceId)))
    const names = claims.flatMap(({ one_time_keys: keys }) => Object.keys(keys[bob.userId]?.[bob.deviceId] ?? {}))
    expect(new Set(names).size).toBe(2)
    expect(names.length).toBe(2)
  })

  it('are listed whole, with their version, for other servers', async () => {
    const list = async () =>
      (await stranger.ask(toBeta(), 'GET', `/_matrix/federation/v1/user/devices/${bob.userId}`)).body
    const before = await list()
    expect(before).toMatchObject({ user_id: bob.userId, devices: [{ device_id: bob.deviceId }] })
    const signer = crossSigner(bob.userId)
    const { user_signing_key: _, ...shown } = signer.body()
    await beta.api.call('POST', '/keys/device_signing/upload', { token: bob.token, body: signer.body() })
    const after = await list()
    expect(after).toMatchObject({ self_signing_key: shown.self_signing_key })
    expect(after.master_key.keys).toEqual(signer.object('master').keys)
    expect(after.user_signing_key).toBeUndefined()
    expect(after.stream_id).toBeGreaterThan(before.stream_id)
  })

  it('are told of users of the asked server alone (row 42 of the security tests)', async () => {
    await query({ [bob.userId]: [] })
    const toAlpha = { name: alpha.name, url: alpha.server.baseUrl }
    const body = { device_keys: { [bob.userId]: [] } }
    const asked = await stranger.ask(toAlpha, 'POST', '/_matrix/federation/v1/user/keys/query', { body })
    expect(asked.body).toEqual({ device_keys: {}, master_keys: {}, self_signing_keys: {} })
    const listed = await stranger.ask(toAlpha, 'GET', `/_matrix/federation/v1/user/devices/${bob.userId}`)
    expect([listed.status, listed.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
  })

  it('of a server that lies, or is away, are none', async () => {
    const { handler } = stranger.front
    const forged = { ...deviceMaker({ userId: `@m:${stranger.name}`, deviceId: 'F' }).identity(), more: 1 }
    const whole = deviceMaker({ userId: bob.userId, deviceId: 'OTHER' }).identity()
    stranger.front.handler = (request, response) => {
      if (!request.url.includes('/user/keys/')) return handler(request, response)
      const deviceKeys = { [`@m:${stranger.name}`]: { F: forged }, [bob.userId]: { OTHER: whole } }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ device_keys: deviceKeys }))
    }
    const lied = await query({ [`@m:${stranger.name}`]: [], [bob.userId]: [] })
    expect(lied.device_keys[`@m:${stranger.name}`]).toEqual({})
    expect(Object.keys(lied.device_keys[bob.userId])).toEqual([bob.deviceId])
    stranger.front.handler = (_request, response) => {
      response.writeHead(401).end('{"errcode":"M_UNKNOWN_TOKEN","error":"no"}')
    }
    const away = await query({ [`@m:${stranger.name}`]: [], [bob.userId]: [] })
    expect(Object.keys(away.failures)).toEqual([stranger.name])
    expect(Object.keys(away.device_keys)).toEqual([bob.userId])
    stranger.front.handler = handler
  })

  it('are not waited for longer than the client says', async () => {
    const { handler } = stranger.front
    stranger.front.handler = () => {}
    const start = Date.now()
    const { failures } = await query({ [`@m:${stranger.name}`]: [] }, 300)
    expect(Object.keys(failures)).toEqual([stranger.name])
    expect(Date.now() - start).toBeLessThan(9_000)
    stranger.front.handler = handler
  })

  it("carry the asking user's own signature, which stays at home", async () => {
    const own = crossSigner(alice.userId)
    await alpha.api.call('POST', '/keys/device_signing/upload', { token: alice.token, body: own.body() })
    const { master_keys: masters } = await query({ [bob.userId]: [] })
    const { signatures: _, ...master } = masters[bob.userId]
    const signed = signJson(master, alice.userId, own.keys.user_signing)
    const name = Object.keys(master.keys)[0]!.slice('ed25519:'.length)
    const body = { [bob.userId]: { [name]: signed } }
    const { failures } = await alpha.api.call('POST', '/keys/signatures/upload', { token: alice.token, body })
    expect(failures).toEqual({})
    expect((await query({ [bob.userId]: [] })).master_keys[bob.userId].signatures).toEqual(signed.signatures)
  })
})
