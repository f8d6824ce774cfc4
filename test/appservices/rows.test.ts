import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Account, createRoom, type Json, PASSWORD, register, sendText } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'
import { type Behaviour, startService, TAKES_ALL, type TestService } from './service.ts'
import { as, makeGhost, openWorld, registration, type World } from './world.ts'

// Every row of the published tables about application services, in either dialect: how this server is asked, and how it asks.

const PROTOCOL = {
  user_fields: ['nick'],
  location_fields: ['channel'],
  icon: 'mxc://localhost/irc',
  field_types: { nick: { regexp: '.+', placeholder: 'nick' } },
  instances: [{ desc: 'Net', icon: 'mxc://localhost/net', fields: { network: 'net' }, network_id: 'net' }],
}
const USER = { userid: '@_irc_jim:localhost', protocol: 'irc', fields: { nick: 'jim' } }
const LOCATION = { alias: '#_irc_chan:localhost', protocol: 'irc', fields: { channel: 'chan' } }
const enc = encodeURIComponent
/** What is said of a protocol is remembered for a while: each question is about another. */
const PROTOCOLS = Array.from({ length: 16 }, (_, n) => `irc${n}`)

describe.each([
  { dialect: 'matrix', client: '/_matrix/client/v3', app: '/_matrix/app/v1' },
  { dialect: 'proto', client: '/_proto/client/r0', app: '/_proto/app/v1' },
] as const)('in the dialect $dialect', ({ dialect, client, app }) => {
  let service: TestService
  let world: World
  let person: Account
  const irc = registration('irc', {
    protocols: ['irc', ...PROTOCOLS],
    namespaces: {
      users: [
        { regex: '@_irc_.*', exclusive: true },
        { regex: '@shared_.*', exclusive: false },
      ],
      aliases: [
        { regex: '#_irc_.*', exclusive: true },
        { regex: '#shared_.*', exclusive: false },
      ],
    },
  })
  const quiet = registration('quiet', { protocols: ['quiet'], namespaces: {} })
  const other = registration('other')
  /** One that knows no versions. What a service understands is remembered by its address. */
  const old = registration('old', { protocols: ['old'] })
  beforeAll(async () => {
    service = await startService()
    const [url, oldUrl] = [`${service.url}/base/path`, `${service.url}/old`]
    const registered = [{ ...irc, url }, { ...old, url: oldUrl }, quiet, other]
    world = await openWorld(registered, { outbound: { dialect } })
    person = await register(world.api, 'person')
  })
  afterAll(async () => {
    await world.close()
    await service.close()
  })
  beforeEach(() => {
    service.behave(TAKES_ALL)
    service.heard.length = 0
  })

  const call = (method: string, path: string, body?: unknown, token: string | undefined = person.token) =>
    world.api.request(method, client + path, { ...(token !== '' && { token }), ...(body !== undefined && { body }) })
  const heard = (part: string) => service.heard.filter(({ path }) => path.includes(part))
  const refusal = (status: number, errcode: string) => ({ status, body: { errcode } })
  let names = 0
  const fresh = (start: string) => `${start}${++names}`
  /** A room with a ghost in it, and what is heard once the service has taken that. */
  async function bridged(reg = irc): Promise<string> {
    const ghost = await makeGhost(world.api, reg, fresh(`_${reg.id}_g`))
    const roomId = await createRoom(world.api, person.token, { preset: 'public_chat' })
    await call('POST', as(ghost, `/join/${enc(roomId)}`), {}, reg.as_token)
    await service.until('the ghost', (event) => event.state_key === ghost && event.content.membership === 'join')
    return roomId
  }

  describe('registration', () => {
    test('url: a base URL, which may have a path', async () => {
      await bridged()
      const prefix = `/base/path${app}/transactions/`
      expect(heard('/transactions/').every(({ path }) => path.startsWith(prefix))).toBe(true)
      expect(heard('/transactions/').length).toBeGreaterThan(0)
    })

    test('url: null when no traffic is needed', async () => {
      expect((await call('GET', `/directory/room/${enc('#_other_x:localhost')}`)).status).toBe(404)
      expect((await call('GET', '/profile/@_other_x:localhost')).status).toBe(404)
      const path = `/_matrix/client/v1/appservice/other/ping`
      const ping = await world.api.request('POST', path, { token: other.as_token, body: {} })
      expect(ping).toMatchObject(refusal(400, 'M_URL_NOT_SET'))
    })

    test('as_token: what the service uses toward the homeserver, in header or query', async () => {
      expect((await call('GET', '/account/whoami', undefined, irc.as_token)).status).toBe(200)
      expect((await call('GET', `/account/whoami?access_token=${irc.as_token}`, undefined, '')).status).toBe(200)
      expect(await call('GET', '/account/whoami', undefined, irc.hs_token)).toMatchObject(
        refusal(401, 'M_UNKNOWN_TOKEN'),
      )
    })

    test('hs_token: what the homeserver uses toward the service, in header and query', async () => {
      await bridged()
      for (const { authorization, query } of service.heard) {
        expect([authorization, query.get('access_token')]).toEqual([`Bearer ${irc.hs_token}`, irc.hs_token])
      }
    })

    test("sender_localpart: the service's own user, who is there from the start and nobody else's", async () => {
      expect((await call('GET', '/account/whoami', undefined, irc.as_token)).body.user_id).toBe('@_irc_bot:localhost')
      const wish = { username: '_irc_bot', password: PASSWORD, auth: { type: 'm.login.dummy' } }
      expect(await call('POST', '/register', wish, '')).toMatchObject(refusal(400, 'M_EXCLUSIVE'))
      const roomId = await createRoom(world.api, person.token)
      expect((await call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: '@_irc_bot:localhost' })).status).toBe(200)
    })

    test('namespaces: none is individually required', async () => {
      const { body } = await call('GET', '/account/whoami', undefined, quiet.as_token)
      expect(body.user_id).toBe('@_quiet_bot:localhost')
    })

    test('protocols: external protocols provided', async () => {
      service.behave(({ path }) =>
        path.endsWith('/protocol/irc') ? [200, PROTOCOL] : [404, { errcode: 'M_NOT_FOUND' }],
      )
      expect(Object.keys((await call('GET', '/thirdparty/protocols')).body)).toEqual(['irc'])
    })

    test.each([
      ['a human', () => ''],
      ['another service', () => other.as_token],
    ])('exclusive: stops %s creating users', async (_, token) => {
      const type = token() === '' ? 'm.login.dummy' : 'm.login.application_service'
      const wish = { type, username: fresh('_irc_h'), password: PASSWORD, auth: { type: 'm.login.dummy' } }
      expect(await call('POST', '/register', wish, token())).toMatchObject(refusal(400, 'M_EXCLUSIVE'))
    })

    test.each([
      ['a human', () => person.token],
      ['another service', () => other.as_token],
    ])('exclusive: stops %s creating and deleting aliases', async (_, token) => {
      const roomId = await createRoom(world.api, token())
      const taken = fresh('_irc_a')
      await createRoom(world.api, irc.as_token, { room_alias_name: taken })
      for (const [method, alias, body] of [
        ['PUT', fresh('_irc_b'), { room_id: roomId }],
        ['DELETE', taken, undefined],
      ] as const) {
        const answer = await call(method, `/directory/room/${enc(`#${alias}:localhost`)}`, body, token())
        expect(answer).toMatchObject(refusal(400, 'M_EXCLUSIVE'))
      }
      const created = await call('POST', '/createRoom', { room_alias_name: fresh('_irc_c') }, token())
      expect(created).toMatchObject(refusal(400, 'M_EXCLUSIVE'))
    })

    test('not exclusive: humans create and delete what they like, and so does the service', async () => {
      const human = await register(world.api, fresh('shared_h'))
      const alias = enc(`#${fresh('shared_a')}:localhost`)
      const roomId = await createRoom(world.api, human.token)
      const path = `/directory/room/${alias}`
      expect((await call('PUT', path, { room_id: roomId }, human.token)).status).toBe(200)
      expect((await call('DELETE', path, undefined, human.token)).status).toBe(200)
      expect(await makeGhost(world.api, irc, fresh('shared_g'))).toMatch(/^@shared_g/)
    })
  })

  describe('PUT A/transactions/{txnId}', () => {
    test('events in the client format, linearised; state events by their state_key', async () => {
      const roomId = await bridged()
      for (const text of ['1', '2', '3']) await sendText(world.api, person.token, roomId, text, text)
      await service.until('the last', (event) => event.room_id === roomId && event.content.body === '3')
      const received = service.events().filter((event) => event.room_id === roomId)
      expect(received.map(({ content }) => content.body).filter(Boolean)).toEqual(['1', '2', '3'])
      expect(received.every((event) => 'state_key' in event === (event.type !== 'm.room.message'))).toBe(true)
      for (const key of ['event_id', 'room_id', 'sender', 'origin_server_ts', 'type', 'content', 'unsigned']) {
        expect(received.every((event) => key in event)).toBe(true)
      }
    })

    test('a retry reuses the txnId and the same events', async () => {
      const roomId = await bridged()
      service.heard.length = 0
      let tries = 0
      service.behave(() => (tries++ === 0 ? 500 : [200, {}]))
      await sendText(world.api, person.token, roomId, 'r', 'to be repeated')
      await service.until('the retry', (event) => event.content.body === 'to be repeated')
      const [first, second] = service.heard
      expect([second!.path, second!.text]).toEqual([first!.path, first!.text])
    })

    test('older services are sent them without a version', async () => {
      service.behave(({ path }) => (path.startsWith('/old/_') ? 404 : [200, {}]))
      const roomId = await bridged(old)
      await sendText(world.api, person.token, roomId, 'o', 'to the old one')
      await service.until('it', (event) => event.content.body === 'to the old one')
      expect(heard('/transactions/').at(-1)!.path).toMatch(/^\/old\/transactions\/\d+$/)
    })
  })

  /** Makes what is asked for, and then answers 200, as a service must. */
  const obliging: Behaviour = ({ path }, { response }) => {
    const name = decodeURIComponent(path.split('/').at(-1)!).slice(1).split(':')[0]!
    const wish = { type: 'm.login.application_service', username: name, inhibit_login: true }
    const owner = path.startsWith('/old/') ? old.as_token : irc.as_token
    const made = path.includes('/users/')
      ? call('POST', '/register', wish, owner)
      : call('POST', '/createRoom', { room_alias_name: name, preset: 'public_chat' }, owner)
    void made.then(() => response.writeHead(200).end('{}'))
    return undefined
  }
  const lookups = (behaviour: Behaviour): Behaviour => {
    return (one, raw) => (one.path.includes('/transactions/') ? [200, {}] : behaviour(one, raw))
  }

  describe.each([
    ['GET A/users/{userId}', 'users', (name: string) => `@${name}:localhost`, '/profile/'],
    ['GET A/rooms/{roomAlias}', 'rooms', (name: string) => `#${name}:localhost`, '/directory/room/'],
  ] as const)('%s', (_, kind, idOf, path) => {
    test('200: it exists, made by the service through the client interface', async () => {
      service.behave(lookups(obliging))
      const id = idOf(fresh('_irc_q'))
      expect((await call('GET', path + enc(id))).status).toBe(200)
      expect(heard(`/${kind}/`).map((one) => [one.method, one.path])).toEqual([
        ['GET', `/base/path${app}/${kind}/${enc(id)}`],
      ])
    })

    test.each([401, 403, 404])('%i, with or without an error body: there is none', async (status) => {
      for (const body of [{}, { errcode: 'ORG.EXAMPLE_NONE' }]) {
        service.behave(lookups(() => [status, body]))
        expect((await call('GET', path + enc(idOf(fresh('_irc_n'))))).status).toBe(404)
      }
    })

    test('only ids in the namespace are queried', async () => {
      await call('GET', path + enc(idOf(fresh('outside'))))
      expect(heard(`/${kind}/`)).toEqual([])
    })

    test('older services are asked without a version', async () => {
      const id = idOf(fresh('_old_o'))
      service.behave(lookups((one, raw) => (one.path.startsWith('/old/_') ? 404 : (obliging(one, raw) as undefined))))
      expect((await call('GET', path + enc(id))).status).toBe(200)
      expect(heard(`/${kind}/`).at(-1)!.path).toBe(`/old/${kind}/${enc(id)}`)
    })
  })

  test('GET A/rooms/{roomAlias}: no answer is asked for again, and then 408 to the asking client', async () => {
    service.behave(lookups(() => 500))
    const answer = await call('GET', `/directory/room/${enc('#_irc_silent:localhost')}`)
    expect(answer).toMatchObject(refusal(408, 'M_CONNECTION_TIMEOUT'))
    expect(heard('/rooms/')).toHaveLength(3)
  })

  describe('third-party networks', () => {
    const NONE = [404, { errcode: 'ORG.EXAMPLE_NO' }] as const
    /** The one service answers so, the old one knows nothing. */
    const answering = (status: number, body: unknown) =>
      service.behave(lookups(({ path }) => (path.startsWith('/old/') ? NONE : [status, body])))
    const asked = (start = '/base') =>
      service.heard.map(({ path }) => path).filter((path) => path.startsWith(start) && path.includes('/thirdparty/'))
    let protocols = 0
    async function protocolFrom(bodyOf: (name: string) => unknown) {
      const name = PROTOCOLS[protocols++]!
      answering(200, bodyOf(name))
      return { name, ...(await call('GET', `/thirdparty/protocol/${name}`)) }
    }
    const shown = { ...PROTOCOL, instances: [{ ...PROTOCOL.instances[0], instance_id: 'irc|net' }] }

    test('GET A/thirdparty/protocol/{protocol}: as it is, or keyed by protocol', async () => {
      for (const bodyOf of [() => PROTOCOL, (name: string) => ({ [name]: PROTOCOL })]) {
        const { name, ...answer } = await protocolFrom(bodyOf)
        expect(answer).toEqual({ status: 200, body: shown })
        expect(asked().at(-1)).toBe(`/base/path${app}/thirdparty/protocol/${name}`)
      }
    })

    test.each(Object.keys(PROTOCOL))('protocol object: %s is required', async (key) => {
      const { [key as keyof typeof PROTOCOL]: _, ...rest } = PROTOCOL
      expect(await protocolFrom(() => rest)).toMatchObject(refusal(404, 'M_NOT_FOUND'))
    })

    test.each([
      ['desc', true],
      ['fields', true],
      ['network_id', true],
      ['icon', false],
    ])('instance: %s is required: %s', async (key, isRequired) => {
      const instance: Json = { ...PROTOCOL.instances[0] }
      delete instance[key]
      const { body } = await protocolFrom(() => ({ ...PROTOCOL, instances: [instance, PROTOCOL.instances[0]] }))
      expect(body.instances).toHaveLength(isRequired ? 1 : 2)
    })

    const SEARCHES = [
      ['GET A/thirdparty/user/{protocol}', '/thirdparty/user/irc', '?nick=j%26m', USER],
      ['GET A/thirdparty/location/{protocol}', '/thirdparty/location/irc', '?channel=%23c', LOCATION],
      ['GET A/thirdparty/user?userid=', '/thirdparty/user', `?userid=${enc(USER.userid)}`, USER],
      ['GET A/thirdparty/location?alias=', '/thirdparty/location', `?alias=${enc(LOCATION.alias)}`, LOCATION],
    ] as const
    test.each(SEARCHES)('%s', async (_, path, query, found) => {
      answering(200, [found])
      expect(await call('GET', path + query)).toEqual({ status: 200, body: [found] })
      expect(asked()).toEqual([`/base/path${app}${path}`])
      const { query: passed } = service.heard.find((one) => one.path === asked()[0])!
      for (const [key, value] of new URLSearchParams(query)) expect(passed.get(key)).toBe(value)
      for (const status of [401, 403, 404]) {
        answering(status, { errcode: 'ORG.EXAMPLE_NO' })
        expect(await call('GET', path + query)).toMatchObject(refusal(404, 'M_NOT_FOUND'))
      }
    })

    test.each(SEARCHES)('%s: older services are asked at the unstable path', async (_, path, query, found) => {
      const isOld = (one: string) => one.startsWith('/old/')
      service.behave(lookups((one) => (!isOld(one.path) ? NONE : one.path.includes('/v1/') ? 404 : [200, [found]])))
      const oldPath = path.replace('/irc', '/old')
      expect((await call('GET', oldPath + query)).body).toEqual([found])
      expect(asked('/old').at(-1)).toBe(`/old/_matrix/app/unstable${oldPath}`)
    })

    test.each([
      ['user object', USER, '/thirdparty/user/irc'],
      ['location object', LOCATION, '/thirdparty/location/irc'],
    ] as const)('%s: all its fields are required', async (_, found, path) => {
      const broken = Object.keys(found).map((key) =>
        Object.fromEntries(Object.entries(found).filter(([k]) => k !== key)),
      )
      answering(200, [...broken, found])
      expect((await call('GET', path)).body).toEqual([found])
      answering(200, broken)
      expect((await call('GET', path)).status).toBe(404)
      answering(200, { not: 'a list' })
      expect((await call('GET', path)).status).toBe(404)
    })
  })

  describe('calls of a service', () => {
    test('user_id selects the user; the default is that of sender_localpart', async () => {
      const ghost = await makeGhost(world.api, irc, fresh('_irc_u'))
      const whoami = async (path: string) => (await call('GET', path, undefined, irc.as_token)).body.user_id
      expect(await whoami(as(ghost, '/account/whoami'))).toBe(ghost)
      expect(await whoami('/account/whoami')).toBe('@_irc_bot:localhost')
      expect(await call('GET', as(person.userId, '/account/whoami'), undefined, irc.as_token)).toMatchObject(
        refusal(403, 'M_FORBIDDEN'),
      )
    })

    test('registration of users in its namespace, with m.login.application_service and without a password', async () => {
      const wish = { type: 'm.login.application_service', username: fresh('_irc_r') }
      expect((await call('POST', '/register', wish, irc.as_token)).body.user_id).toBe(`@${wish.username}:localhost`)
    })

    test('outside its namespaces it creates nothing: M_EXCLUSIVE', async () => {
      const wish = { type: 'm.login.application_service', username: fresh('outside') }
      expect(await call('POST', '/register', wish, irc.as_token)).toMatchObject(refusal(400, 'M_EXCLUSIVE'))
      const room = { room_alias_name: fresh('outside') }
      expect(await call('POST', '/createRoom', room, irc.as_token)).toMatchObject(refusal(400, 'M_EXCLUSIVE'))
    })
  })

  test('POST A/ping', async () => {
    const path = '/_matrix/client/v1/appservice/irc/ping'
    const answer = await world.api.request('POST', path, { token: irc.as_token, body: { transaction_id: 'p' } })
    expect(answer).toEqual({ status: 200, body: { duration_ms: expect.any(Number) } })
    const [ping] = await waitUntil('the ping', () => heard('/ping').length > 0 && heard('/ping'))
    expect([ping!.path, ping!.body]).toEqual([`/base/path${app}/ping`, { transaction_id: 'p' }])
  })
})
