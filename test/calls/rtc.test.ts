import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { TokenVerifier } from 'livekit-server-sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { livekitIdentity, livekitRoom } from '../../src/domain/calls/livekit-names.ts'
import { type Account, createRoom, type Json, openApi, register } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { startServer } from '../support/server.ts'

const KEY = 'hearth'
const SECRET = 'a secret of thirty-two or more characters'
const SFU = 'wss://livekit.example.org'
const ASK = '/_hearth/livekit'
const TRANSPORTS = '/_matrix/client/unstable/org.matrix.msc4143/rtc/transports'

/** LiveKit's interface to servers, as far as it makes rooms: it checks the token as LiveKit does. */
async function startRoomService() {
  const made: Json[] = []
  const verifier = new TokenVerifier(KEY, SECRET)
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', async () => {
      const claims = await verifier.verify((request.headers.authorization ?? '').slice(7)).catch(() => undefined)
      const isGood = request.url === '/twirp/livekit.RoomService/CreateRoom' && claims?.video?.roomCreate === true
      if (isGood) made.push(JSON.parse(Buffer.concat(pieces).toString()))
      response.writeHead(isGood ? 200 : 401, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, made, close: () => new Promise((resolve) => server.close(resolve)) }
}

let rooms: Awaited<ReturnType<typeof startRoomService>>
let network: Neighbourhood
let here: Neighbour
let there: Neighbour
let denied: Neighbour
let alice: Account
let bob: Account
let room: string

beforeAll(async () => {
  rooms = await startRoomService()
  network = openNeighbourhood()
  there = await network.open()
  denied = await network.open()
  const livekit = { url: SFU, api_url: rooms.url, api_key: KEY, api_secret: SECRET }
  // Names are compared without their ports, which is all that these differ by.
  here = await network.open({
    calls: { livekit },
    public_base_url: 'https://here.example.org',
    registration: { enabled: true },
  })
  alice = await here.person('alice')
  bob = await there.person('bob')
  room = await createRoom(here.api, alice.token, { preset: 'public_chat' })
  await there.api.call('POST', `/join/${encodeURIComponent(room)}?server_name=${encodeURIComponent(here.name)}`, {
    token: bob.token,
    body: {},
  })
})
afterAll(async () => {
  await network.close()
  await rooms.close()
})

const openId = (at: Neighbour, { userId, token }: Account): Promise<Json> =>
  at.api.call('POST', `/user/${encodeURIComponent(userId)}/openid/request_token`, { token, body: {} })
const ask = (path: string, body: object) => here.api.request('POST', ASK + path, { body })
const memberOf = ({ userId, deviceId }: Account) => ({ id: 'm1', claimed_user_id: userId, claimed_device_id: deviceId })
const wish = async (at: Neighbour, who: Account, changes: object = {}) => ({
  room_id: room,
  slot_id: 'm.call#ROOM',
  openid_token: await openId(at, who),
  member: memberOf(who),
  ...changes,
})

describe('the transports of calls', () => {
  it('are told in two places alike, with and without releases', async () => {
    const transport = { type: 'livekit', livekit_service_url: `https://here.example.org${ASK}` }
    for (const path of [TRANSPORTS, '/_matrix/client/v1/rtc/transports']) {
      expect(await here.api.call('GET', path, { token: alice.token })).toEqual({ rtc_transports: [transport] })
    }
    const wellKnown = await here.api.call('GET', '/.well-known/matrix/client')
    expect(wellKnown['org.matrix.msc4143.rtc_foci']).toEqual([transport])
    expect(await here.api.call('GET', `${ASK}/healthz`)).toEqual({})
  })

  it('are unknown where there is no LiveKit', async () => {
    const server = await startServer()
    const api = openApi(server.baseUrl)
    const { token } = await register(api, 'carol')
    const unknown = { status: 404, body: { errcode: 'M_UNRECOGNIZED' } }
    expect(await api.request('GET', TRANSPORTS, { token })).toMatchObject(unknown)
    expect(await api.request('GET', `${ASK}/healthz`)).toMatchObject(unknown)
    const body = { room, device_id: 'D', openid_token: { access_token: 'x', matrix_server_name: 'localhost' } }
    expect(await api.request('POST', `${ASK}/sfu/get`, { body })).toMatchObject(unknown)
    expect(Object.keys(await api.call('GET', '/.well-known/matrix/client'))).toEqual(['m.homeserver'])
    await api.close()
    await server.close()
  })
})

describe('a token for LiveKit', () => {
  const verifier = new TokenVerifier(KEY, SECRET)

  it('lets our users into their call, whose room is made', async () => {
    const before = rooms.made.length
    const { status, body } = await ask('/get_token', await wish(here, alice))
    expect([status, body.url]).toEqual([200, SFU])
    const claims = await verifier.verify(body.jwt)
    expect(claims.sub).toBe(livekitIdentity(alice.userId, alice.deviceId, 'm1'))
    expect(claims.video).toEqual({
      room: livekitRoom(room, 'm.call#ROOM'),
      roomJoin: true,
      roomCreate: false,
      canPublish: true,
      canSubscribe: true,
      canUpdateOwnMetadata: true,
    })
    expect(rooms.made.slice(before)).toEqual([
      { name: livekitRoom(room, 'm.call#ROOM'), empty_timeout: 300, departure_timeout: 20 },
    ])
  })

  it('names participants in clear for older clients', async () => {
    const { body } = await ask('/sfu/get', { room, device_id: 'DEVICE', openid_token: await openId(here, alice) })
    const claims = await verifier.verify(body.jwt)
    expect([claims.sub, claims.video?.room]).toEqual([`${alice.userId}:DEVICE`, livekitRoom(room, 'm.call#ROOM')])
  })

  it('takes no device id that would make another participant', async () => {
    const openid_token = await openId(here, alice)
    const answer = await ask('/sfu/get', { room, device_id: '8448:DEVICE', openid_token })
    expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
    // The names of newer clients hide such ids, so that they are safe there.
    const member = { ...memberOf(alice), claimed_device_id: '8448:DEVICE' }
    expect((await ask('/get_token', await wish(here, alice, { member }))).status).toBe(200)
  })

  it.each(['is_locked', 'is_suspended'])('is not given for a token from before the account %s', async (restraint) => {
    const carol = await here.person(`carol-${restraint.slice(3)}`)
    await here.api.call('POST', `/join/${encodeURIComponent(room)}`, { token: carol.token, body: {} })
    const body = await wish(here, carol)
    expect((await ask('/get_token', body)).status).toBe(200)
    const set = (value: boolean) =>
      here.server.database.db.tx((tx) =>
        tx.query(
          `UPDATE account SET ${restraint} = $1 FROM matrix_user u WHERE u.user_nid = account.user_nid AND u.user_id = $2`,
          [value, carol.userId],
        ),
      )
    await set(true)
    expect(await ask('/get_token', body)).toMatchObject({ status: 401, body: { errcode: 'M_UNAUTHORIZED' } })
    await set(false)
    expect((await ask('/get_token', body)).status).toBe(200)
  })

  it('lets users of other servers join, and makes no room for them', async () => {
    const before = rooms.made.length
    const { status, body } = await ask('/get_token', await wish(there, bob))
    expect(status).toBe(200)
    expect((await verifier.verify(body.jwt)).sub).toBe(livekitIdentity(bob.userId, bob.deviceId, 'm1'))
    expect(rooms.made.length).toBe(before)
  })

  it('makes rooms for users of servers that operators name', async () => {
    const before = rooms.made.length
    await here.server.restart({ calls: { livekit: { full_access_servers: [there.name] } } })
    expect((await ask('/get_token', await wish(there, bob))).status).toBe(200)
    expect(rooms.made.length).toBe(before + 1)
  })

  it('has the names that MSC4195 gives', () => {
    // printf '["!r:example.org","m.call#ROOM"]' | openssl dgst -sha256 -binary | base64
    expect(livekitRoom('!r:example.org', 'm.call#ROOM')).toBe('Wo+x1mkuP6lfKFaewLo3cuhg3yvsg/b+emgRekpVe7Q')
  })
})

describe('no token', () => {
  it('for a token of another, a wrong one, or one that was never given', async () => {
    const other = await wish(here, alice, { member: memberOf(bob) })
    expect(await ask('/get_token', other)).toMatchObject({ status: 401, body: { errcode: 'M_UNAUTHORIZED' } })
    for (const server of [here, there]) {
      const openid_token = { access_token: 'nonsense', matrix_server_name: server.name }
      const answer = await ask('/get_token', await wish(here, alice, { openid_token }))
      expect(answer).toMatchObject({ status: 401, body: { errcode: 'M_UNAUTHORIZED' } })
    }
    const stolen = { ...(await openId(there, bob)), matrix_server_name: here.name }
    expect((await ask('/get_token', await wish(here, alice, { openid_token: stolen }))).status).toBe(401)
    // An access token is no OpenID token.
    const access = { access_token: alice.token, matrix_server_name: here.name }
    expect((await ask('/get_token', await wish(here, alice, { openid_token: access }))).status).toBe(401)
  })

  it('for who is not in the room, and for a room that is not here', async () => {
    const eve = await here.person('eve')
    expect(await ask('/get_token', await wish(here, eve))).toMatchObject({
      status: 403,
      body: { errcode: 'M_FORBIDDEN' },
    })
    for (const room_id of ['!nowhere:localhost', 'nonsense']) {
      expect((await ask('/get_token', await wish(here, alice, { room_id }))).status).toBe(403)
    }
  })

  it('for users of a server that is denied, which is not even asked', async () => {
    const mallory = await denied.person('mallory')
    const token = await openId(denied, mallory)
    await here.server.restart({ federation: { deny: ['localhost'] } })
    let asked = 0
    const { handler } = denied.front
    denied.front.handler = (request, response) => {
      asked += 1
      return handler(request, response)
    }
    const answer = await ask('/get_token', await wish(denied, mallory, { openid_token: token }))
    expect(answer).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    expect(asked).toBe(0)
    await here.server.restart({ federation: { deny: [] } })
  })

  it('for bodies that lack something, and for servers that cannot be asked', async () => {
    const good = await wish(here, alice)
    for (const key of Object.keys(good)) {
      const { [key as keyof typeof good]: _, ...rest } = good
      expect(await ask('/get_token', rest)).toMatchObject({ status: 400, body: { errcode: 'M_BAD_JSON' } })
    }
    const delegated = { ...good, delay_id: 'x', delay_timeout: 1 }
    expect(await ask('/get_token', delegated)).toMatchObject({ status: 400, body: { errcode: 'M_BAD_JSON' } })
    const openid_token = { access_token: 'x', matrix_server_name: '127.0.0.1:1' }
    expect((await ask('/get_token', { ...good, openid_token })).status).toBe(502)
  })

  it('when LiveKit cannot be asked', async () => {
    await here.server.restart({ calls: { livekit: { api_url: 'http://127.0.0.1:1' } } })
    expect(await ask('/get_token', await wish(here, alice))).toMatchObject({ status: 502 })
    await here.server.restart({ calls: { livekit: { api_url: rooms.url } } })
  })
})
