import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { type Account, createRoom, type Json, register } from '../support/api.ts'
import { type Behaviour, type Heard, startService, type TestService } from './service.ts'
import { openWorld, registration, type World } from './world.ts'

const ROOTS = ['/_matrix/client/v3', '/_proto/client/r0'] as const
const PROTOCOL = {
  user_fields: ['nick'],
  location_fields: ['channel'],
  icon: 'mxc://localhost/irc',
  field_types: { nick: { regexp: '.+', placeholder: 'nick' } },
  instances: [{ desc: 'Net', icon: 'mxc://localhost/net', fields: { network: 'net' }, network_id: 'net' }],
}
const USER = { userid: '@_irc_jim:localhost', protocol: 'irc', fields: { nick: 'jim' } }
const LOCATION = { alias: '#_irc_chan:localhost', protocol: 'irc', fields: { channel: 'chan' } }

let service: TestService
let other: TestService
let world: World
let person: Account
let irc: ReturnType<typeof registration>
beforeAll(async () => {
  service = await startService()
  other = await startService()
  irc = registration('irc', { url: service.url, protocols: ['irc'] })
  const quiet = registration('quiet', { protocols: ['irc', 'silent'] })
  world = await openWorld([irc, registration('two', { url: other.url, protocols: ['irc', 'xmpp'] }), quiet])
  person = await register(world.api, 'person')
})
afterAll(async () => {
  await world.close()
  await service.close()
  await other.close()
})
beforeEach(() => {
  service.behave(lookups())
  other.behave(() => [404, { errcode: 'M_NOT_FOUND' }])
  service.heard.length = 0
})

/** Answers lookups, and for the rest as it is told. */
const lookups =
  (rest: Behaviour = () => [404, { errcode: 'M_NOT_FOUND' }]): Behaviour =>
  (heard, raw) => {
    if (heard.path.includes('/transactions/')) return [200, {}]
    if (heard.path.endsWith('/thirdparty/protocol/irc')) return [200, PROTOCOL]
    if (heard.path.includes('/thirdparty/user')) return [200, [USER, { userid: 'broken' }]]
    if (heard.path.includes('/thirdparty/location')) return [200, [LOCATION]]
    return rest(heard, raw)
  }

const call = (method: string, path: string, body?: unknown, token = person.token) =>
  world.api.request(method, path, { token, ...(body !== undefined && { body }) })
const queried = (part: string): Heard[] => service.heard.filter(({ path }) => path.includes(part))
const enc = encodeURIComponent

/** Makes whatever is asked for, as a service must before it answers 200. */
const obliging = lookups(({ path }, { response }) => {
  const name = decodeURIComponent(path.split('/').at(-1)!).slice(1).split(':')[0]!
  const made = path.includes('/users/')
    ? call(
        'POST',
        '/register',
        { type: 'm.login.application_service', username: name, inhibit_login: true },
        irc.as_token,
      )
    : call('POST', '/createRoom', { room_alias_name: name, preset: 'public_chat' }, irc.as_token)
  void made.then(() => response.writeHead(200).end('{}'))
  return undefined
})

describe.each(ROOTS)('GET A/users and A/rooms, for clients at %s', (root) => {
  const tag = root.includes('_proto') ? 'p' : 'm'

  test('200: the user exists, once the service has made it', async () => {
    service.behave(obliging)
    const roomId = await createRoom(world.api, person.token)
    const user = `@_irc_asked${tag}:localhost`
    const invite = () => call('POST', `${root}/rooms/${enc(roomId)}/invite`, { user_id: user })
    expect((await invite()).status).toBe(200)
    expect(
      queried('/users/').map(({ path, query, authorization }) => [path, query.get('access_token'), authorization]),
    ).toEqual([[`/_matrix/app/v1/users/${enc(user)}`, irc.hs_token, `Bearer ${irc.hs_token}`]])
  })

  test('200: the room exists, once the service has made it', async () => {
    service.behave(obliging)
    const alias = `#_irc_asked${tag}:localhost`
    const answers = await Promise.all([1, 2, 3].map(() => call('GET', `${root}/directory/room/${enc(alias)}`)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    // Who asks the same meanwhile waits with the first.
    expect(queried('/rooms/')).toHaveLength(1)
    expect((await call('POST', `${root}/join/${enc(alias)}`, {})).status).toBe(200)
  })

  test.each([401, 403, 404])('%i: does not exist', async (status) => {
    service.behave(lookups(() => [status, { errcode: 'ORG.EXAMPLE_NO' }]))
    const alias = enc(`#_irc_no${status}${tag}:localhost`)
    expect(await call('GET', `${root}/directory/room/${alias}`)).toMatchObject({
      status: 404,
      body: { errcode: 'M_NOT_FOUND' },
    })
    expect((await call('GET', `${root}/profile/@_irc_no${status}${tag}:localhost`)).status).toBe(404)
    expect(queried('/rooms/')).toHaveLength(1)
  })

  test('only ids in the namespace are queried', async () => {
    await call('GET', `${root}/directory/room/${enc('#outside:localhost')}`)
    await call('GET', `${root}/profile/@outside:localhost`)
    expect([...queried('/users/'), ...queried('/rooms/')]).toEqual([])
  })

  test.each([
    ['500', () => 500],
    [
      'a connection that breaks',
      ((_, { response }) => {
        response.destroy()
        return undefined
      }) as Behaviour,
    ],
  ] as readonly [string, Behaviour][])(
    'no answer (%s): retries, then 408 to the asking client',
    async (name, behaviour) => {
      service.behave(lookups(behaviour))
      const alias = enc(`#_irc_${name.length}${tag}:localhost`)
      const answer = await call('GET', `${root}/directory/room/${alias}`)
      expect(answer).toMatchObject({ status: 408, body: { errcode: 'M_CONNECTION_TIMEOUT' } })
      expect(queried('/rooms/')).toHaveLength(3)
      let tries = 0
      service.behave(lookups((heard, raw) => (tries++ === 0 ? 500 : (obliging(heard, raw) as undefined))))
      expect((await call('GET', `${root}/directory/room/${alias}`)).status).toBe(200)
    },
  )

  test('an old service is asked at the old path', async () => {
    service.behave(({ path }, raw) => (path.startsWith('/_') ? 404 : (obliging({ path } as Heard, raw) as undefined)))
    // What it understood last is tried first, and then the others.
    expect((await call('GET', `${root}/directory/room/${enc(`#_irc_old${tag}:localhost`)}`)).status).toBe(200)
    expect(queried('/rooms/').at(-1)!.path).toMatch(/^\/rooms\//)
  })
})

describe.each(ROOTS)('third-party lookups over all services, at %s', (root) => {
  test('protocols, with the instances of all that provide them', async () => {
    const { status, body } = await call('GET', `${root}/thirdparty/protocols`)
    const irc = { ...PROTOCOL, instances: [{ ...PROTOCOL.instances[0], instance_id: 'irc|net' }] }
    expect([status, body]).toEqual([200, { irc }])
    expect((await call('GET', `${root}/thirdparty/protocol/irc`)).body).toEqual(irc)
    for (const name of ['xmpp', 'silent', 'unheard-of']) {
      const answer = await call('GET', `${root}/thirdparty/protocol/${name}`)
      expect(answer).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
    }
  })

  test('users and locations by fields, which are passed on', async () => {
    expect((await call('GET', `${root}/thirdparty/user/irc?nick=j%26m`)).body).toEqual([USER])
    const [asked] = queried('/thirdparty/user/irc')
    expect([asked!.query.get('nick'), asked!.query.get('access_token')]).toEqual(['j&m', irc.hs_token])
    expect((await call('GET', `${root}/thirdparty/location/irc`)).body).toEqual([LOCATION])
    expect((await call('GET', `${root}/thirdparty/location/none`)).status).toBe(404)
  })

  test('users and locations by id and alias', async () => {
    expect((await call('GET', `${root}/thirdparty/user?userid=${enc(USER.userid)}`)).body).toEqual([USER])
    expect((await call('GET', `${root}/thirdparty/location?alias=${enc(LOCATION.alias)}`)).body).toEqual([LOCATION])
    expect(queried('/thirdparty/location')[0]!.query.get('alias')).toBe(LOCATION.alias)
    service.behave(() => 404)
    expect((await call('GET', `${root}/thirdparty/user?userid=${enc(USER.userid)}`)).status).toBe(404)
  })
})

describe('POST C1/appservice/{appserviceId}/ping', () => {
  const ping = (token: string, id = 'irc', body: object = { transaction_id: 'a ping' }) =>
    call('POST', `/_matrix/client/v1/appservice/${id}/ping`, body, token)

  it('says how long the service took', async () => {
    service.behave(() => [200, {}])
    const { status, body } = await ping(irc.as_token)
    expect([status, body]).toEqual([200, { duration_ms: expect.any(Number) }])
    expect(queried('/ping').map(({ method, path, body: sent }) => [method, path, sent])).toEqual([
      ['POST', '/_matrix/app/v1/ping', { transaction_id: 'a ping' }],
    ])
  })

  it('is for that service alone', async () => {
    for (const [token, id] of [
      [person.token, 'irc'],
      [irc.as_token, 'two'],
      [irc.as_token, 'none'],
    ] as const) {
      expect(await ping(token, id)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    }
  })

  it('says what is wrong', async () => {
    service.behave(() => [403, { errcode: 'M_FORBIDDEN' }])
    expect(await ping(irc.as_token)).toMatchObject({
      status: 502,
      body: { errcode: 'M_BAD_STATUS', status: 403, body: '{"errcode":"M_FORBIDDEN"}' },
    })
    service.behave((_, { response }: Json) => void response.destroy() as undefined)
    const broken = await ping(irc.as_token)
    expect(broken).toMatchObject({ status: 502, body: { errcode: 'M_CONNECTION_FAILED' } })
    expect(JSON.stringify(broken.body)).not.toContain(irc.hs_token)
  })
})

describe('PUT C/directory/list/appservice/{networkId}/{roomId}', () => {
  it('lists rooms of a network, which are found by their instance and among all networks', async () => {
    const roomId = await createRoom(world.api, irc.as_token, { preset: 'public_chat', name: 'listed' })
    const path = `/directory/list/appservice/net/${enc(roomId)}`
    const found = async (body: object) =>
      (await call('POST', '/publicRooms', body)).body.chunk.map((one: Json) => one.room_id)
    expect((await call('PUT', path, { visibility: 'public' })).body.errcode).toBe('M_FORBIDDEN')
    expect((await call('PUT', path, { visibility: 'public' }, irc.as_token)).status).toBe(200)
    expect(await found({ third_party_instance_id: 'irc|net' })).toEqual([roomId])
    expect(await found({ third_party_instance_id: 'irc|other' })).toEqual([])
    expect(await found({})).toEqual([])
    expect(await found({ include_all_networks: true })).toEqual([roomId])
    expect((await call('PUT', path, { visibility: 'private' }, irc.as_token)).status).toBe(200)
    expect(await found({ include_all_networks: true })).toEqual([])
  })
})
