import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '../../src/core/json.ts'
import { bodyReader } from '../../src/http/body.ts'
import { queryReader } from '../../src/http/query.ts'
import { CLIENT_CODES } from '../../src/http/role.ts'
import { adminEndpoints } from '../../src/routes/admin/index.ts'
import { appEndpoints } from '../../src/routes/app/index.ts'
import { identityEndpoints } from '../../src/routes/identity/index.ts'
import { mediaEndpoints } from '../../src/routes/media/index.ts'
import { type Account, type Api, openApi, PASSWORD, register } from '../support/api.ts'
import { CLIENT_API, SERVER_API } from '../support/interfaces.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** What is read here of a shape. */
interface Declared {
  readonly type?: string | readonly string[]
  readonly const?: JsonValue
  readonly enum?: readonly JsonValue[]
  readonly format?: string
  readonly minimum?: number
  readonly minItems?: number
  readonly items?: Declared
  readonly properties?: Readonly<Record<string, Declared>>
  readonly required?: readonly string[]
  readonly anyOf?: readonly Declared[]
}

const IDS: Readonly<Record<string, string>> = {
  'user-id': '@a:b.example',
  'room-id': '!a:b.example',
  'event-id': '$a',
  'room-alias': '#a:b.example',
}

/** A value of a shape, with all its keys. */
function sample(shape: Declared): JsonValue {
  const { type, format = '' } = shape
  if (shape.const !== undefined) return shape.const
  if (shape.enum !== undefined) return shape.enum[0]!
  if (shape.anyOf !== undefined) return sample(shape.anyOf[0]!)
  switch ([type].flat()[0]) {
    case 'string':
      return IDS[format] ?? 'abc'
    case 'integer':
    case 'number':
      return shape.minimum ?? 1
    case 'boolean':
      return true
    case 'array':
      return Array.from({ length: shape.minItems ?? 1 }, () => sample(shape.items ?? {}))
    default:
      return Object.fromEntries(Object.entries(shape.properties ?? {}).map(([name, inner]) => [name, sample(inner)]))
  }
}

type Way = readonly (string | number)[]

/** The ways to the optional keys of a shape, at every level. */
function optionalKeys(shape: Declared, way: Way = []): Way[] {
  if (shape.anyOf !== undefined) return optionalKeys(shape.anyOf[0]!, way)
  if (shape.type === 'array') return optionalKeys(shape.items ?? {}, [...way, 0])
  return Object.entries(shape.properties ?? {}).flatMap(([name, inner]) => [
    ...(shape.required?.includes(name) ? [] : [[...way, name]]),
    ...optionalKeys(inner, [...way, name]),
  ])
}

const ENDPOINTS = [
  ...CLIENT_API,
  ...SERVER_API,
  ...identityEndpoints,
  ...mediaEndpoints,
  ...adminEndpoints,
  ...appEndpoints,
]

const failureOf = (act: () => void): string | undefined => {
  try {
    act()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

test('C2: null is absence for every optional key of every declared body, in all roles', () => {
  let looked = 0
  const failures = ENDPOINTS.flatMap((each) => {
    if (each.options.body === undefined) return []
    const shape = each.options.body as Declared
    const reader = bodyReader(each, CLIENT_CODES)!
    return optionalKeys(shape).flatMap((way) => {
      looked++
      const body = sample(shape)
      reader.check({ value: body, offence: undefined })
      const holder = way.slice(0, -1).reduce<JsonValue>((value, step) => (value as JsonObject)[step]!, body)
      ;(holder as JsonObject)[way.at(-1)!] = null
      const failure = failureOf(() => reader.check({ value: body, offence: undefined }))
      return failure === undefined ? [] : [`${each.method} ${each.path} ${way.join('.')}: ${failure}`]
    })
  })
  expect(failures).toEqual([])
  expect(looked).toBeGreaterThan(100)
})

test('C2: an empty query parameter is absence for every optional parameter, in all roles', () => {
  let looked = 0
  const failures = ENDPOINTS.flatMap(({ method, path, options: { query } }) => {
    if (query === undefined) return []
    const { properties = {}, required = [] } = query as Declared
    const given = Object.entries(properties).map(([name, inner]) => {
      if (!required.includes(name)) looked++
      return [name, required.includes(name) ? String([sample(inner)].flat()[0]) : ''] as const
    })
    const read = queryReader(query, CLIENT_CODES)
    const failure = failureOf(() => {
      expect(Object.keys(read(Object.fromEntries(given)) as object).sort()).toEqual([...required].sort())
    })
    return failure === undefined ? [] : [`${method} ${path}: ${failure}`]
  })
  expect(failures).toEqual([])
  expect(looked).toBeGreaterThan(60)
})

describe.each(['/_matrix/client/v3', '/_proto/client/r0'])('under %s', (prefix) => {
  let server: TestServer
  let api: Api
  let alice: Account

  beforeAll(async () => {
    server = await startServer({ registration: { enabled: true } })
    api = openApi(server.baseUrl)
    alice = await register(api, 'alice')
  })
  afterAll(async () => {
    await api.close()
    await server.close()
  })

  const ask = (method: string, path: string, body?: JsonValue, token: string | undefined = alice.token) =>
    api.request(method, prefix + path, { ...(token && { token }), ...(body !== undefined && { body }) })

  test('C2: createRoom with null in all of its twelve keys makes the room of an empty body', async () => {
    const keys = ['visibility', 'preset', 'room_alias_name', 'name', 'topic', 'invite', 'invite_3pid', 'room_version']
    const others = ['creation_content', 'initial_state', 'power_level_content_override', 'is_direct']
    const body = Object.fromEntries([...keys, ...others].map((key) => [key, null]))
    const made = await ask('POST', '/createRoom', body)
    expect(made).toMatchObject({ status: 200, body: { room_id: expect.any(String) } })
    const state = await api.call('GET', `/rooms/${encodeURIComponent(made.body.room_id)}/state`, { token: alice.token })
    expect(state.map(({ type }: { type: string }) => type)).not.toContain('m.room.name')
  })

  test('C2: null in the state key of a first event is the empty state key', async () => {
    const initial_state = [{ type: 'm.room.topic', state_key: null, content: { topic: 'x', other: null } }]
    const { body } = await ask('POST', '/createRoom', { initial_state })
    const topic = await api.call('GET', `/rooms/${encodeURIComponent(body.room_id)}/state/m.room.topic`, {
      token: alice.token,
    })
    // What an event holds is its author's own.
    expect(topic).toEqual({ topic: 'x', other: null })
  })

  test('C2: a login that writes what it leaves out as null', async () => {
    const identifier = { type: 'm.id.user', user: 'alice', medium: null, address: null }
    const left = { token: null, device_id: null, initial_device_display_name: null, refresh_token: null, user: null }
    const body = { type: 'm.login.password', password: PASSWORD, identifier, ...left }
    expect(await ask('POST', '/login', body, '')).toMatchObject({ status: 200, body: { user_id: alice.userId } })
  })

  test('C2: a registration and its authentication that write what they leave out as null', async () => {
    const left = { device_id: null, initial_device_display_name: null, inhibit_login: null, refresh_token: null }
    const wish = { username: `n${prefix.length}`, password: PASSWORD, ...left, type: null }
    const { status, body } = await ask('POST', '/register?kind=', { ...wish, auth: null }, '')
    expect(status).toBe(401)
    const auth = { type: 'm.login.dummy', session: body.session, token: null, identifier: { user: null } }
    expect(await ask('POST', '/register', { ...wish, auth }, '')).toMatchObject({ status: 200 })
    expect(await ask('POST', '/register', { ...wish, auth: { type: null, session: null } }, '')).toMatchObject({
      status: 400,
      body: { errcode: 'M_USER_IN_USE' },
    })
  })

  test('C2: a filter, kept or in the query, is the one without its nulls', async () => {
    const path = `/user/${encodeURIComponent(alice.userId)}/filter`
    const room = { timeline: { limit: 3, types: null, lazy_load_members: null }, state: null, rooms: null }
    const kept = await ask('POST', path, { event_fields: null, event_format: null, presence: null, room })
    expect(kept).toMatchObject({ status: 200 })
    expect(await ask('GET', `${path}/${kept.body.filter_id}`)).toMatchObject({
      body: { room: { timeline: { limit: 3 } } },
    })
    const inline = encodeURIComponent(JSON.stringify({ room: { timeline: null, state: { types: null } } }))
    expect(await ask('GET', `/sync?timeout=0&filter=${inline}`)).toMatchObject({ status: 200 })
  })

  test('C2: keys and rooms are asked for with null in what is left out', async () => {
    expect(
      await ask('POST', '/keys/query', { device_keys: { [alice.userId]: [] }, timeout: null, token: null }),
    ).toMatchObject({
      status: 200,
    })
    const upload = { device_keys: null, one_time_keys: null, fallback_keys: null }
    expect(await ask('POST', '/keys/upload', upload)).toMatchObject({ status: 200 })
    const search = { limit: null, since: null, filter: null, include_all_networks: null, third_party_instance_id: null }
    expect(await ask('POST', '/publicRooms?server=', search)).toMatchObject({ status: 200, body: { chunk: [] } })
  })

  test('C2: empty query parameters of a sync and of a history are absent', async () => {
    const { body } = await ask('POST', '/createRoom', {})
    const empty = '/sync?timeout=&since=&filter=&full_state=&set_presence='
    const first = await ask('GET', empty)
    expect(first).toMatchObject({ status: 200, body: { next_batch: expect.any(String) } })
    const room = encodeURIComponent(body.room_id)
    expect(await ask('GET', `/rooms/${room}/messages?dir=b&from=&to=&limit=&filter=`)).toMatchObject({ status: 200 })
    expect(await ask('GET', `/rooms/${room}/members?at=&membership=&not_membership=`)).toMatchObject({ status: 200 })
    expect(await ask('GET', '/publicRooms?limit=&since=&server=')).toMatchObject({ status: 200 })
    expect(await ask('GET', '/account/whoami?user_id=&access_token=')).toMatchObject({ status: 200 })
  })

  test('C2: null in a required key is a wrong value', async () => {
    expect(await ask('POST', '/login', { type: null }, '')).toMatchObject({
      status: 400,
      body: { errcode: 'M_BAD_JSON' },
    })
    expect(await ask('PUT', '/sendToDevice/m.x/1', { messages: { [alice.userId]: { D: null } } })).toMatchObject({
      status: 400,
      body: { errcode: 'M_BAD_JSON' },
    })
  })
})
