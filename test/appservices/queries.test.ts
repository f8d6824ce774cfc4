import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { type Account, createRoom, type Json, register } from '../support/api.ts'
import { type Behaviour, type Heard, startService, type TestService } from './service.ts'
import { openWorld, registration, type TestRegistration, type World } from './world.ts'

const ROOTS = ['/_matrix/client/v3', '/_proto/client/r0'] as const
const PROTOCOL = {
  user_fields: ['nick'],
  location_fields: ['channel'],
  icon: 'mxc://localhost/irc',
  field_types: { nick: { regexp: '.+', placeholder: 'nick' } },
  instances: [{ desc: 'Net', icon: 'mxc://localhost/net', fields: { network: 'net' }, network_id: 'net' }],
}
/** The same network, as another service has it. */
const SECOND = { ...PROTOCOL, instances: [{ ...PROTOCOL.instances[0], network_id: 'other' }] }
const USER = { userid: '@_irc_jim:localhost', protocol: 'irc', fields: { nick: 'jim' } }
const LOCATION = { alias: '#_irc_chan:localhost', protocol: 'irc', fields: { channel: 'chan' } }

let service: TestService
let other: TestService
let world: World
let person: Account
let irc: TestRegistration
let hangs: TestRegistration
let halfway: TestRegistration
let hanging: TestService
const logged: Json[] = []
beforeAll(async () => {
  service = await startService()
  other = await startService()
  irc = registration('irc', { url: service.url, protocols: ['irc'] })
  hanging = await startService()
  hanging.behave((heard, { response }) => {
    if (heard.path.includes('/protocol/')) return 404
    if (heard.path.startsWith('/halfway')) response.writeHead(200).write('{')
    return undefined
  })
  hangs = registration('hangs', { url: hanging.url, protocols: ['hanging'] })
  halfway = registration('halfway', { url: `${hanging.url}/halfway` })
  const quiet = registration('quiet', { protocols: ['irc', 'silent'] })
  const two = registration('two', { url: other.url, protocols: ['irc', 'xmpp'] })
  const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line)) })
  world = await openWorld([irc, two, quiet, hangs, halfway], {}, { log })
  person = await register(world.api, 'person')
})
afterAll(async () => {
  await world.close()
  await service.close()
  await other.close()
  await hanging.close()
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

/** What a service does that must not be waited for for ever: begun before the other tests, which take as long, and looked at after them. */
const hung = () =>
  Promise.all([
    call('GET', `/directory/room/${enc('#_hangs_x:localhost')}`),
    call('GET', '/thirdparty/user/hanging'),
    call('POST', '/_matrix/client/v1/appservice/hangs/ping', {}, hangs.as_token),
    call('POST', '/_matrix/client/v1/appservice/halfway/ping', {}, halfway.as_token),
  ])
let answers: ReturnType<typeof hung>
beforeAll(() => {
  answers = hung()
})

describe('queries of services that do not answer well', () => {
  it('asks once for all who want to know the same', async () => {
    service.behave(obliging)
    const alias = enc('#_irc_once:localhost')
    const found = await Promise.all([1, 2, 3].map(() => call('GET', `/directory/room/${alias}`)))
    expect(found.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(queried('/rooms/')).toHaveLength(1)
  })

  const flood: Behaviour = (_, { response }) => {
    response.writeHead(200)
    const more = () => {
      if (!response.destroyed) response.write(Buffer.alloc(65_536, 32), () => setImmediate(more))
    }
    more()
    return undefined
  }
  const breaks: Behaviour = (_, { response }) => void response.destroy() as undefined
  const redirects: Behaviour = (_, { response }) =>
    void response.writeHead(302, { location: `${other.url}/elsewhere` }).end() as undefined

  test.each([
    ['500', () => 500],
    ['a connection that breaks', breaks],
    ['100 MB, and more', flood],
    ['a redirect', redirects],
  ] as readonly [string, Behaviour][])(
    '%s: 408 to who asks, said in the log, and well again after',
    async (name, behaviour) => {
      service.behave(lookups(behaviour))
      const alias = enc(`#_irc_${name.length}:localhost`)
      const before = logged.length
      expect(await call('GET', `/directory/room/${alias}`)).toMatchObject({
        status: 408,
        body: { errcode: 'M_CONNECTION_TIMEOUT', error: expect.stringContaining('irc does not answer') },
      })
      expect(queried('/rooms/')).toHaveLength(3)
      expect(other.heard.some(({ path }) => path === '/elsewhere')).toBe(false)
      const line = logged.slice(before).find(({ msg }) => msg === 'an application service did not answer a query')
      expect(line).toMatchObject({ appservice: 'irc', reason: expect.stringMatching(/.+/) })
      expect(JSON.stringify(line)).not.toContain(irc.hs_token)
      // A user of whom nobody tells is one that there is not.
      expect((await call('GET', `/profile/@_irc_${name.length}:localhost`)).status).toBe(404)
      let tries = 0
      service.behave(lookups((heard, raw) => (tries++ === 0 ? 500 : (obliging(heard, raw) as undefined))))
      expect((await call('GET', `/directory/room/${alias}`)).status).toBe(200)
    },
  )
})

describe.each(ROOTS)('third-party lookups over all services, at %s', (root) => {
  test('protocols, with the instances of all that provide them', async () => {
    other.behave(({ path }) => (path.endsWith('/protocol/irc') ? [200, SECOND] : 404))
    const { status, body } = await call('GET', `${root}/thirdparty/protocols`)
    const [one, two] = [PROTOCOL.instances[0], SECOND.instances[0]]
    const instances = [
      { ...one, instance_id: 'irc|net' },
      { ...two, instance_id: 'two|other' },
    ]
    expect([status, body]).toEqual([200, { irc: { ...PROTOCOL, instances } }])
    expect((await call('GET', `${root}/thirdparty/protocol/irc`)).body).toEqual({ ...PROTOCOL, instances })
    for (const name of ['xmpp', 'silent', 'unheard-of']) {
      const answer = await call('GET', `${root}/thirdparty/protocol/${name}`)
      expect(answer).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
    }
  })

  test('users of all that know any, and without those that do not answer', async () => {
    const second = { ...USER, userid: '@_two_jim:localhost' }
    other.behave(() => [200, [second]])
    expect((await call('GET', `${root}/thirdparty/user/irc?nick=jim`)).body).toEqual([USER, second])
    other.behave(() => 500)
    expect((await call('GET', `${root}/thirdparty/user/irc?nick=jim`)).body).toEqual([USER])
    expect((await call('GET', `${root}/thirdparty/location/none`)).status).toBe(404)
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

test('one that hangs: 408 for an alias, nothing found, 504 for a ping, also half-way through an answer', async () => {
  const [room, user, ping, half] = await answers
  expect(room).toMatchObject({ status: 408, body: { errcode: 'M_CONNECTION_TIMEOUT' } })
  expect(user).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
  for (const answer of [ping, half]) {
    expect(answer).toMatchObject({ status: 504, body: { errcode: 'M_CONNECTION_TIMEOUT' } })
  }
})
