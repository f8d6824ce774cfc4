import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { loadRegistrations } from '../../src/domain/appservices/load-registrations.ts'
import { crossSigner, deviceMaker } from '../keys/key-maker.ts'
import { type Account, createRoom, PASSWORD, register } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'
import { as, makeGhost, openWorld, registration, type World } from './world.ts'

const irc = registration('irc', {
  namespaces: {
    users: [
      { regex: '@_irc_.*', exclusive: true },
      { regex: '@shared_.*', exclusive: false },
    ],
    aliases: [{ regex: '#_irc_.*', exclusive: true }],
  },
})
const slow = registration('slow', { rate_limited: true })
const SERVER = 'localhost'
const ROOTS = ['/_matrix/client/v3', '/_proto/client/r0'] as const

let world: World
let person: Account
beforeAll(async () => {
  world = await openWorld([irc, slow], {
    server_name: SERVER as never,
    rate_limits: { enabled: true, message: { per_second: 0.001, burst: 3 } },
  })
  person = await register(world.api, 'person')
})
afterAll(() => world.close())

const call = (method: string, path: string, body?: unknown, token: string | undefined = irc.as_token) =>
  world.api.request(method, path, { ...(token !== '' && { token }), ...(body !== undefined && { body }) })
const wish = (username: string, more: object = {}) => ({ type: 'm.login.application_service', username, ...more })

describe.each(ROOTS)('a service registers users and acts as them, at %s', (root) => {
  const name = `_irc_${root.includes('_proto') ? 'p' : 'm'}`

  test('without a password', async () => {
    const made = await call('POST', `${root}/register`, wish(name, { inhibit_login: true }))
    expect(made).toEqual({ status: 200, body: { user_id: `@${name}:${SERVER}`, home_server: SERVER } })
    expect(await call('POST', `${root}/register`, wish(name))).toMatchObject({
      status: 400,
      body: { errcode: 'M_USER_IN_USE' },
    })
  })

  test('with the token in the query', async () => {
    const path = `${root}/account/whoami?access_token=${irc.as_token}&user_id=${encodeURIComponent(`@${name}:${SERVER}`)}`
    const { status, body } = await call('GET', path, undefined, '')
    expect([status, body]).toEqual([200, { user_id: `@${name}:${SERVER}`, is_guest: false }])
  })

  test('as its own user unless it names another', async () => {
    expect((await call('GET', `${root}/account/whoami`)).body.user_id).toBe(`@_irc_bot:${SERVER}`)
  })

  test.each([
    ['outside its namespaces', '@person:localhost', 403, 'M_FORBIDDEN'],
    ['of another server', '@_irc_bob:elsewhere', 403, 'M_FORBIDDEN'],
    ['no user id', 'nobody', 403, 'M_FORBIDDEN'],
    ['not registered', '@_irc_never:localhost', 403, 'M_FORBIDDEN'],
  ])('a user %s is refused', async (_, user, status, errcode) => {
    expect(await call('GET', as(user, `${root}/account/whoami`))).toMatchObject({ status, body: { errcode } })
  })

  test('asked to create entities outside its namespaces, M_EXCLUSIVE', async () => {
    const refused = { status: 400, body: { errcode: 'M_EXCLUSIVE' } }
    expect(await call('POST', `${root}/register`, wish('somebody'))).toMatchObject(refused)
    expect(await call('POST', `${root}/register`, wish('_slow_x'))).toMatchObject(refused)
    const room = await call('POST', `${root}/createRoom`, { room_alias_name: 'elsewhere' })
    expect(room).toMatchObject(refused)
  })

  test.each([
    ['no token', '', 401, 'M_MISSING_TOKEN'],
    ['a token of nobody', 'nonsense', 401, 'M_UNKNOWN_TOKEN'],
    ['the hs_token', irc.hs_token, 401, 'M_UNKNOWN_TOKEN'],
  ])('with %s nobody registers', async (_, token, status, errcode) => {
    const answer = await call('POST', `${root}/register`, wish('_irc_x'), token)
    expect(answer).toMatchObject({ status, body: { errcode } })
    const login = { type: 'm.login.application_service', identifier: { type: 'm.id.user', user: '_irc_bot' } }
    expect(await call('POST', `${root}/login`, login, token)).toMatchObject({ status, body: { errcode } })
  })
})

describe('registration by a service', () => {
  it('makes a login unless told not to', async () => {
    const { body } = await call('POST', '/register', wish('_irc_login', { device_id: 'DEV' }))
    expect(body).toMatchObject({ user_id: '@_irc_login:localhost', device_id: 'DEV' })
    const me = await call('GET', '/account/whoami', undefined, body.access_token)
    expect(me.body).toMatchObject({ user_id: '@_irc_login:localhost', device_id: 'DEV' })
  })

  it('keeps to the grammar of names, and changes none', async () => {
    for (const name of ['_irc_Capital', '_irc_ü', '_irc_ x']) {
      expect((await call('POST', '/register', wish(name))).body.errcode).toBe('M_INVALID_USERNAME')
    }
    expect((await call('POST', '/register', { type: 'm.login.application_service' })).body.errcode).toBe(
      'M_MISSING_PARAM',
    )
  })

  it('of one user by twenty calls at once makes one', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => call('POST', '/register', wish('_irc_race', { inhibit_login: true }))),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(400)])
  })

  it('shows operators whose user it is', async () => {
    await makeGhost(world.api, irc, '_irc_owned')
    const rows = await world.server.database.db.query(
      `SELECT u.user_id, a.appservice_id FROM account a JOIN matrix_user u USING (user_nid)
       WHERE u.user_id IN ('@_irc_owned:localhost', '@_irc_bot:localhost', '@person:localhost') ORDER BY 1`,
    )
    expect(rows).toEqual([
      { user_id: '@_irc_bot:localhost', appservice_id: 'irc' },
      { user_id: '@_irc_owned:localhost', appservice_id: 'irc' },
      { user_id: '@person:localhost', appservice_id: null },
    ])
  })
})

describe('login by a service', () => {
  const login = (user: string, token?: string) =>
    call('POST', '/login', { type: 'm.login.application_service', identifier: { type: 'm.id.user', user } }, token)

  it('is a flow', async () => {
    const { body } = await call('GET', '/login', undefined, '')
    expect(body.flows).toContainEqual({ type: 'm.login.application_service' })
  })

  it('as a user of its own, by id or name', async () => {
    await makeGhost(world.api, irc, '_irc_in')
    for (const name of ['_irc_in', '@_irc_in:localhost', '_irc_bot']) {
      const { status, body } = await login(name)
      expect(status).toBe(200)
      expect((await call('GET', '/account/whoami', undefined, body.access_token)).status).toBe(200)
    }
  })

  it('not as anybody else', async () => {
    expect((await login('person')).body.errcode).toBe('M_EXCLUSIVE')
    expect((await login('_irc_unmade')).body.errcode).toBe('M_FORBIDDEN')
    expect((await login('_irc_in', slow.as_token)).body.errcode).toBe('M_EXCLUSIVE')
  })
})

describe('what a service keeps for itself', () => {
  it.each(['_irc_human', '_irc_bot'])('%s cannot be registered in any way', async (username) => {
    const refused = { status: 400, body: { errcode: 'M_EXCLUSIVE' } }
    const body = { username, password: PASSWORD, auth: { type: 'm.login.dummy' } }
    expect(await call('POST', '/register', body, '')).toMatchObject(refused)
    expect(await call('GET', `/register/available?username=${username}`, undefined, '')).toMatchObject(refused)
  })

  it('people may have names that it does not keep', async () => {
    const human = await register(world.api, 'shared_human')
    expect((await call('GET', as(human.userId, '/account/whoami'))).status).toBe(200)
  })

  it('aliases are neither made nor deleted by others', async () => {
    const refused = { status: 400, body: { errcode: 'M_EXCLUSIVE' } }
    const { token } = person
    const roomId = await createRoom(world.api, token)
    const alias = encodeURIComponent('#_irc_chan:localhost')
    const path = `/directory/room/${alias}`
    expect(await call('PUT', path, { room_id: roomId }, token)).toMatchObject(refused)
    expect(await call('POST', '/createRoom', { room_alias_name: '_irc_chan' }, token)).toMatchObject(refused)
    const own = await createRoom(world.api, irc.as_token, { room_alias_name: '_irc_chan' })
    expect(await call('DELETE', path, undefined, token)).toMatchObject(refused)
    expect(await call('DELETE', path, undefined, slow.as_token)).toMatchObject(refused)
    expect((await call('GET', path)).body.room_id).toBe(own)
    expect((await call('DELETE', path)).status).toBe(200)
  })
})

describe('a user of a service', () => {
  let ghost: string
  let roomId: string
  beforeAll(async () => {
    ghost = await makeGhost(world.api, irc, '_irc_ghost')
    roomId = (await call('POST', as(ghost, '/createRoom'), {})).body.room_id
  })
  const send = (txnId: string, user = ghost, token = irc.as_token, more = '') =>
    call(
      'PUT',
      as(user, `/rooms/${encodeURIComponent(roomId)}/send/m.room.message/${txnId}`, more),
      { body: 'x' },
      token,
    )

  it('has no rate limits unless asked', async () => {
    for (let n = 0; n < 6; n++) expect((await send(`free${n}`)).status).toBe(200)
    const limited = await makeGhost(world.api, slow, '_slow_ghost')
    const room = (await call('POST', as(limited, '/createRoom'), {}, slow.as_token)).body.room_id
    const put = (user: string, n: number) =>
      call('PUT', as(user, `/rooms/${encodeURIComponent(room)}/send/m.x/${n}`), {}, slow.as_token)
    const statuses: number[] = []
    for (let n = 0; n < 5; n++) statuses.push((await put(limited, n)).status)
    expect(statuses.at(-1)).toBe(429)
    // The sender is excluded.
    for (let n = 0; n < 5; n++) expect((await put('@_slow_bot:localhost', n)).status).toBe(403)
  })

  it('sends an event once however often it asks, and each user for itself', async () => {
    const first = await send('once')
    expect((await send('once')).body).toEqual(first.body)
    await world.server.restart()
    expect((await send('once')).body).toEqual(first.body)
    const other = await makeGhost(world.api, irc, '_irc_other')
    await call('POST', as(ghost, `/rooms/${encodeURIComponent(roomId)}/invite`), { user_id: other })
    await call('POST', as(other, `/join/${encodeURIComponent(roomId)}`), {})
    expect((await send('once', other)).body.event_id).not.toBe(first.body.event_id)
  })

  it('says when something happened; nobody else may', async () => {
    const room = encodeURIComponent(roomId)
    const tsOf = async (id: string) =>
      (await call('GET', as(ghost, `/rooms/${room}/event/${id}`))).body.origin_server_ts
    expect(await tsOf((await send('then', ghost, irc.as_token, '&ts=12345')).body.event_id)).toBe(12345)
    const topic = await call('PUT', as(ghost, `/rooms/${room}/state/m.room.topic?ts=23456`), { topic: 'then' })
    expect(await tsOf(topic.body.event_id)).toBe(23456)
    const mine = await createRoom(world.api, person.token)
    const path = `/rooms/${encodeURIComponent(mine)}/send/m.x/1?ts=12345`
    const { event_id } = await world.api.call('PUT', path, { token: person.token, body: {} })
    const event = await world.api.call('GET', `/rooms/${encodeURIComponent(mine)}/event/${event_id}`, {
      token: person.token,
    })
    expect(event.origin_server_ts).toBeGreaterThan(1e12)
  })

  it.each(ROOTS)('says when memberships changed as state alone, by the specification, at %s', async (root) => {
    const room = `${root}/rooms/${encodeURIComponent(roomId)}`
    const tag = root.includes('_proto') ? 'p' : 'm'
    const other = await makeGhost(world.api, irc, `_irc_then_${tag}`)
    const tsOfMember = async () => {
      const state = await call('GET', as(ghost, `${room}/state/m.room.member/${other}?format=event`))
      return [state.body.content.membership, state.body.origin_server_ts]
    }
    const set = (membership: string, ts: number, user = ghost) =>
      call('PUT', as(user, `${room}/state/m.room.member/${other}?ts=${ts}`), { membership })
    expect((await set('invite', 1_000)).status).toBe(200)
    expect(await tsOfMember()).toEqual(['invite', 1_000])
    expect((await set('join', 2_000, other)).status).toBe(200)
    expect(await tsOfMember()).toEqual(['join', 2_000])
    expect((await set('leave', 3_000)).status).toBe(200)
    expect(await tsOfMember()).toEqual(['leave', 3_000])
    expect((await set('ban', 4_000)).status).toBe(200)
    expect(await tsOfMember()).toEqual(['ban', 4_000])
    // Other endpoints do not support it.
    const unban = await call('POST', as(ghost, `${room}/unban?ts=5000`), { user_id: other })
    expect([unban.status, (await tsOfMember())[1] > 1e12]).toEqual([200, true])
  })

  test.each([
    ['m.room.join_rules', {}],
    ['m.room.power_levels', { events: 5 }],
  ])('B11: is refused %s with %j as anybody is', async (type, content) => {
    const path = `/rooms/${encodeURIComponent(roomId)}/state/${type}`
    expect(await call('PUT', as(ghost, path), content)).toMatchObject({ status: 400, body: { errcode: 'M_BAD_JSON' } })
  })

  it.each(['abc', '-1', '1.5', '9007199254740993'])('is refused the time %j', async (ts) => {
    const path = `/rooms/${encodeURIComponent(roomId)}/send/m.x/bad`
    expect(await call('PUT', as(ghost, path, `&ts=${ts}`), {})).toMatchObject({
      status: 400,
      body: { errcode: 'M_INVALID_PARAM' },
    })
  })

  it.each(ROOTS)('lets its service read who is in its room, without being in it itself, at %s', async (root) => {
    const path = `${root}/rooms/${encodeURIComponent(roomId)}/joined_members`
    const bystander = await makeGhost(world.api, irc, `_irc_by${root.includes('_proto') ? 'p' : 'm'}`)
    for (const reader of [path, as(bystander, path), as(ghost, path)]) {
      const { status, body } = await call('GET', reader)
      expect([status, Object.keys(body.joined ?? {})]).toEqual([200, expect.arrayContaining([ghost])])
    }
    for (const token of [slow.as_token, person.token]) {
      expect(await call('GET', path, undefined, token)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    }
    const foreign = await createRoom(world.api, person.token)
    const other = `${root}/rooms/${encodeURIComponent(foreign)}/joined_members`
    expect((await call('GET', other)).body.errcode).toBe('M_FORBIDDEN')
  })

  it.each(ROOTS)(
    'has keys of devices as which the service calls, without being asked for a proof, at %s',
    async (root) => {
      const user = await makeGhost(world.api, irc, `_irc_keys${root.includes('_proto') ? 'p' : 'm'}`)
      const made = await Promise.all(
        Array.from({ length: 10 }, () => call('PUT', as(user, `${root}/devices/D1`), { display_name: 'one' })),
      )
      expect(made.map(({ status }) => status).sort()).toEqual([...Array(9).fill(200), 201])
      const upload = { device_keys: deviceMaker({ userId: user, deviceId: 'D1' }).identity() }
      expect((await call('POST', as(user, `${root}/keys/upload`, '&device_id=D1'), upload)).status).toBe(200)
      const query = { device_keys: { [user]: [] } }
      const { body } = await call('POST', `${root}/keys/query`, query, person.token)
      expect(Object.keys(body.device_keys[user])).toEqual(['D1'])
      // Cross-signing keys too, and others in their place.
      for (let round = 0; round < 2; round++) {
        const keys = crossSigner(user).body()
        expect((await call('POST', as(user, '/keys/device_signing/upload', '&device_id=D1'), keys)).status).toBe(200)
      }
      // A device of another user is none of this one's.
      expect((await call('GET', as(ghost, `${root}/account/whoami`, '&device_id=D1'))).body.errcode).toBe(
        'M_UNKNOWN_DEVICE',
      )
      await call('PUT', as(user, `${root}/devices/D2`), {})
      expect((await call('POST', as(user, `${root}/delete_devices`), { devices: ['D1', 'D2'] })).status).toBe(200)
      expect((await call('GET', as(user, `${root}/devices`))).body.devices).toEqual([])
    },
  )

  it('has devices that the service makes, uses and deletes', async () => {
    const unknown = await call('GET', as(ghost, '/account/whoami', '&device_id=ABC'))
    expect(unknown).toMatchObject({ status: 400, body: { errcode: 'M_UNKNOWN_DEVICE' } })
    expect((await call('PUT', as(ghost, '/devices/ABC'), { display_name: 'bridge' })).status).toBe(201)
    expect((await call('PUT', as(ghost, '/devices/ABC'), { display_name: 'bridge' })).status).toBe(200)
    for (const name of ['device_id', 'org.matrix.msc3202.device_id']) {
      expect((await call('GET', as(ghost, '/account/whoami', `&${name}=ABC`))).body.device_id).toBe('ABC')
    }
    expect((await call('DELETE', as(ghost, '/devices/ABC'), {})).status).toBe(200)
    expect((await call('GET', as(ghost, '/account/whoami', '&device_id=ABC'))).status).toBe(400)
    const stranger = await call('PUT', '/devices/ABC', { display_name: 'x' }, person.token)
    expect(stranger.status).toBe(404)
  })

  it('sends to devices without one of its own, and uploads no keys', async () => {
    const body = { messages: { [person.userId]: { '*': { n: 1 } } } }
    expect((await call('PUT', as(ghost, '/sendToDevice/m.x/1'), body)).status).toBe(200)
    expect(await call('POST', as(ghost, '/keys/upload'), { one_time_keys: {} })).toMatchObject({
      status: 400,
      body: { errcode: 'M_MISSING_PARAM' },
    })
  })

  it('acts no more once deactivated', async () => {
    const ending = await makeGhost(world.api, irc, '_irc_ending')
    expect((await call('GET', as(ending, '/account/whoami'))).status).toBe(200)
    expect((await call('POST', as(ending, '/account/deactivate'), {})).status).toBe(200)
    const after = await call('GET', as(ending, '/account/whoami'))
    expect(after).toMatchObject({ status: 403, body: { errcode: 'M_USER_DEACTIVATED' } })
  })
})

describe('registrations', () => {
  it('are in force soon after a change; a mistake leaves things as they were', async () => {
    const late = registration('late')
    await world.register(late)
    const whoami = () => call('GET', '/account/whoami', undefined, late.as_token)
    await waitUntil('the new registration', async () => (await whoami()).status === 200)
    await writeFile(join(world.directory, 'zz.yaml'), 'id: broken')
    const changed = { ...late, as_token: `${late.as_token}2` }
    await world.register(changed)
    const config = { application_services: { registrations: [world.directory] } }
    await expect(loadRegistrations(config)).rejects.toThrow(/zz\.yaml:1: the key 'url' is missing/)
    expect((await whoami()).status).toBe(200)
    await rm(join(world.directory, 'zz.yaml'))
    await waitUntil('the old token to end', async () => (await whoami()).status === 401)
    expect((await call('GET', '/account/whoami', undefined, changed.as_token)).status).toBe(200)
    await rm(join(world.directory, 'late.yaml'))
    await waitUntil('the service to be gone', async () => {
      return (await call('GET', '/account/whoami', undefined, changed.as_token)).status === 401
    })
  })

  it('that cannot be read stop the start, and say where', async () => {
    const { config } = loadConfig({
      values: { application_services: { registrations: ['none.yaml'] } },
      directory: '/tmp',
    })
    await expect(loadRegistrations(config)).rejects.toThrow(/application_services\.registrations: .*\/tmp\/none\.yaml/)
  })
})
