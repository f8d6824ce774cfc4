import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { decodable } from '../../../src/store/db/decodable.ts'
import { createRoom, type Json, login, PASSWORD } from '../../support/api.ts'
import { type Office, openOffice } from '../office.ts'

let office: Office
beforeAll(async () => {
  office = await openOffice()
})
afterAll(() => office.close())

const names = (body: { users: { name: string }[] }) => body.users.map(({ name }) => name)

describe('the list of accounts', () => {
  beforeAll(async () => {
    for (const name of ['list-c', 'list-a', 'list-b']) {
      const { token, userId } = await office.person(name)
      const displayname = `Person ${name.at(-1)?.toUpperCase()}`
      await office.api.call('PUT', `/profile/${userId}/displayname`, { token, body: { displayname } })
    }
    await office.api.call('POST', '/register?kind=guest', { body: {} })
  })

  test('shows what there is to know of each', async () => {
    const { users, total } = await office.call('GET', '/v2/users?name=list-a')
    expect(total).toBe(1)
    expect(users).toEqual([
      {
        name: '@list-a:localhost',
        displayname: 'Person A',
        avatar_url: null,
        is_guest: false,
        admin: false,
        deactivated: false,
        erased: false,
        shadow_banned: false,
        locked: false,
        suspended: false,
        user_type: null,
        appservice_id: null,
        creation_ts: expect.any(Number),
        last_seen_ts: null,
      },
    ])
  })

  test('comes in pages that hold everybody once', async () => {
    const seen: string[] = []
    let from: string | undefined = '0'
    while (from !== undefined) {
      const page: { users: { name: string }[]; total: number; next_token?: string } = await office.call(
        'GET',
        `/v2/users?user_id=list-&limit=2&from=${from}`,
      )
      expect(page.total).toBe(3)
      seen.push(...names(page))
      from = page.next_token
    }
    expect(seen).toEqual(['@list-a:localhost', '@list-b:localhost', '@list-c:localhost'])
  })

  test('beyond its end is empty, and says how many there are', async () => {
    expect(await office.call('GET', '/v2/users?user_id=list-&from=99')).toEqual({ users: [], total: 3 })
  })

  test.each([
    ['name=person', ['@list-a:localhost', '@list-b:localhost', '@list-c:localhost']],
    ['name=PERSON%20B', ['@list-b:localhost']],
    ['user_id=list-&order_by=creation_ts', ['@list-c:localhost', '@list-a:localhost', '@list-b:localhost']],
    ['user_id=list-&order_by=displayname&dir=b', ['@list-c:localhost', '@list-b:localhost', '@list-a:localhost']],
    ['admins=true', ['@boss:localhost']],
    ['user_id=list-&admins=true', []],
    ['user_id=%25', []],
  ])('?%s', async (query, expected) => {
    expect(names(await office.call('GET', `/v2/users?${query}`))).toEqual(expected)
  })

  test('guests are in it unless they are not wanted', async () => {
    const all = await office.call('GET', '/v2/users')
    const others = await office.call('GET', '/v2/users?guests=false')
    expect(all.total - others.total).toBe(1)
    expect(others.users.every(({ is_guest }: { is_guest: boolean }) => !is_guest)).toBe(true)
  })

  test.each(['order_by=password_hash', 'from=-1', 'limit=x', 'dir=up', 'name=%00', 'deactivated=maybe'])(
    '?%s is refused',
    async (query) => {
      const { status, body } = await office.ask('GET', `/v2/users?${query}`)
      expect([status, body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
    },
  )
})

describe('an account', () => {
  test('of nobody, or of another server', async () => {
    expect(await office.ask('GET', '/v2/users/@nobody:localhost')).toMatchObject({
      status: 404,
      body: { errcode: 'M_NOT_FOUND' },
    })
    expect(await office.ask('GET', '/v2/users/@x:other.example')).toMatchObject({
      status: 400,
      body: { errcode: 'M_INVALID_PARAM' },
    })
    expect((await office.ask('GET', '/v2/users/nobody')).status).toBe(400)
  })

  test('gets another password, and all its devices are logged out at once', async () => {
    const alice = await office.person('reset-1')
    await office.call('POST', `/v1/reset_password/${alice.userId}`, { new_password: 'a new password' })
    const who = await office.api.request('GET', '/account/whoami', { token: alice.token })
    expect([who.status, who.body.errcode]).toEqual([401, 'M_UNKNOWN_TOKEN'])
    await expect(login(office.api, 'reset-1')).rejects.toMatchObject({ status: 403 })
    expect((await login(office.api, 'reset-1', 'a new password')).userId).toBe(alice.userId)
  })

  test('keeps its devices when that is wished', async () => {
    const alice = await office.person('reset-2')
    const body = { new_password: 'a new password', logout_devices: false }
    await office.call('POST', `/v1/reset_password/${alice.userId}`, body)
    expect((await office.api.request('GET', '/account/whoami', { token: alice.token })).status).toBe(200)
  })

  test('keeps its password when the new one is too short', async () => {
    const alice = await office.person('reset-3')
    const { body } = await office.ask('POST', `/v1/reset_password/${alice.userId}`, { new_password: 'x' })
    expect(body.errcode).toBe('M_WEAK_PASSWORD')
    expect((await login(office.api, 'reset-3', PASSWORD)).userId).toBe(alice.userId)
  })

  test('becomes an administrator, and is none again, at once', async () => {
    const alice = await office.person('promoted')
    const list = () => office.ask('GET', '/v2/users?limit=1', undefined, alice.token)
    expect(await list()).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    await office.call('PUT', `/v1/users/${alice.userId}/admin`, { admin: true })
    expect((await list()).status).toBe(200)
    await office.call('PUT', `/v1/users/${alice.userId}/admin`, { admin: false })
    expect((await list()).status).toBe(403)
  })

  test('of an administrator is not demoted by its owner', async () => {
    const { status, body } = await office.ask('PUT', `/v1/users/${office.boss.userId}/admin`, { admin: false })
    expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
  })

  test('is logged in to on behalf of its user, who sees it', async () => {
    const alice = await office.person('borrowed')
    const { access_token: token } = await office.call('POST', `/v1/users/${alice.userId}/login`, {})
    expect((await office.api.call('GET', '/account/whoami', { token })).user_id).toBe(alice.userId)
    const { devices } = await office.api.call('GET', '/devices', { token: alice.token })
    expect(devices.map(({ display_name }: { display_name: string }) => display_name)).toContain('Administrator')
    expect((await office.ask('POST', `/v1/users/${office.boss.userId}/login`, {})).status).toBe(403)
  })

  test('is logged out everywhere', async () => {
    const alice = await office.person('everywhere')
    const second = await login(office.api, 'everywhere')
    expect(await office.call('POST', `/_hearth/admin/v1/users/${alice.userId}/logout`)).toEqual({ devices: 2 })
    for (const { token } of [alice, second]) {
      expect((await office.api.request('GET', '/account/whoami', { token })).status).toBe(401)
    }
  })

  test('has devices: listed, shown, renamed, removed', async () => {
    const alice = await office.person('gadgets')
    const [second, third] = [await login(office.api, 'gadgets'), await login(office.api, 'gadgets')]
    const at = (rest = '') => `/v2/users/${alice.userId}/devices${rest}`
    await office.call('PUT', at(`/${second.deviceId}`), { display_name: 'phone' })
    expect(await office.call('GET', at(`/${second.deviceId}`))).toMatchObject({
      display_name: 'phone',
      user_id: alice.userId,
    })
    expect((await office.call('GET', at())).total).toBe(3)
    await office.call('DELETE', at(`/${second.deviceId}`))
    await office.call('POST', `/v2/users/${alice.userId}/delete_devices`, { devices: [third.deviceId, 'unknown'] })
    expect((await office.call('GET', at())).devices.map((one: { device_id: string }) => one.device_id)).toEqual([
      alice.deviceId,
    ])
    for (const { token } of [second, third]) {
      expect((await office.api.request('GET', '/account/whoami', { token })).status).toBe(401)
    }
    expect((await office.ask('GET', at(`/${second.deviceId}`))).status).toBe(404)
    expect((await office.ask('PUT', at('/unknown'), { display_name: 'x' })).status).toBe(404)
  })

  test('has rooms and account data', async () => {
    const { token, userId } = await office.person('keeper')
    const { room_id: room } = await office.api.call('POST', '/createRoom', { token, body: {} })
    const { room_id: left } = await office.api.call('POST', '/createRoom', { token, body: {} })
    await office.api.call('POST', `/rooms/${encodeURIComponent(left)}/leave`, { token, body: {} })
    await office.api.call('PUT', `/user/${userId}/account_data/org.x`, { token, body: { a: 1 } })
    const inRoom = `/user/${userId}/rooms/${encodeURIComponent(room)}/account_data/org.y`
    await office.api.call('PUT', inRoom, { token, body: { b: 2 } })
    expect(await office.call('GET', `/v1/users/${userId}/joined_rooms`)).toEqual({ joined_rooms: [room], total: 1 })
    expect(await office.call('GET', `/v1/users/${userId}/memberships`)).toEqual({
      memberships: { [room]: 'join', [left]: 'leave' },
    })
    expect(await office.call('GET', `/v1/users/${userId}/accountdata`)).toEqual({
      account_data: { global: { 'org.x': { a: 1 } }, rooms: { [room]: { 'org.y': { b: 2 } } } },
    })
    expect(await office.call('GET', `/v1/users/${userId}/pushers`)).toEqual({ pushers: [], total: 0 })
    const pusher = {
      ...{ kind: 'http', app_id: 'org.app', pushkey: 'k', app_display_name: 'A', device_display_name: 'D', lang: 'en' },
      data: { url: 'https://push.example.org/_matrix/push/v1/notify' },
    }
    await office.api.call('POST', '/pushers/set', { token, body: pusher })
    expect(await office.call('GET', `/v1/users/${userId}/pushers`)).toMatchObject({ pushers: [pusher], total: 1 })
  })
})

test('whois tells an administrator, and users of themselves, who uses what from where', async () => {
  const alice = await office.person('watched')
  const bob = await office.person('watching')
  await office.api.call('GET', '/account/whoami', { token: alice.token })
  const path = `/admin/whois/${alice.userId}`
  const own = await office.api.call('GET', path, { token: alice.token })
  expect(own.user_id).toBe(alice.userId)
  const [connection] = own.devices[alice.deviceId].sessions[0].connections
  expect(connection).toEqual({ ip: '127.0.0.1', last_seen: expect.any(Number), user_agent: null })
  expect(await office.api.call('GET', path, { token: office.boss.token })).toEqual(own)
  // Tools read it as Synapse has it: all connections under a device without a name.
  expect(await office.call('GET', `/v1/whois/${alice.userId}`)).toEqual({
    user_id: alice.userId,
    devices: { '': { sessions: [{ connections: [connection] }] } },
  })
  expect(await office.api.request('GET', path, { token: bob.token })).toMatchObject({
    status: 403,
    body: { errcode: 'M_FORBIDDEN' },
  })
})

test('the version is told to everybody, free names to administrators', async () => {
  expect((await office.api.call('GET', '/_synapse/admin/v1/server_version')).server_version).toMatch(/^Hearth /)
  expect(await office.call('GET', '/v1/username_available?username=free')).toEqual({ available: true })
  expect((await office.ask('GET', '/v1/username_available?username=boss')).body.errcode).toBe('M_USER_IN_USE')
})

describe('a display name that Postgres refuses to decode', () => {
  it('spoils no list and no count', async () => {
    const odd = await office.person('odd')
    const own = { token: odd.token }
    // Half of a character, as an escape: earlier releases took it.
    const { db } = office.server.database
    await db.query(
      `INSERT INTO profile_field (user_nid, name, value)
       SELECT user_nid, 'displayname', $2 FROM matrix_user WHERE user_id = $1
       ON CONFLICT (user_nid, name) DO UPDATE SET value = excluded.value`,
      [odd.userId, '"Half \\ud800"'],
    )
    const room = await createRoom(office.api, odd.token, { preset: 'public_chat' })
    const settings = { colour: 'blue', key: '\ud800' }
    const secrets = `/user/${odd.userId}/account_data/m.secret_storage.default_key`
    await office.api.call('PUT', secrets, { ...own, body: settings })
    for (const query of ['', '?name=half', '?order_by=displayname']) {
      const { users } = await office.call('GET', `/v2/users${query}`)
      expect(users.map(({ name }: Json) => name)).toContain(odd.userId)
    }
    expect((await office.call('GET', `/v2/users/${odd.userId}`)).name).toBe(odd.userId)
    for (const path of [
      `/v1/users/${odd.userId}/sent_invite_count?from_ts=0`,
      `/v1/users/${odd.userId}/cumulative_joined_room_count?from_ts=0`,
      '/v1/statistics/users/media?order_by=displayname',
      `/v1/rooms/${room}/members`,
    ]) {
      expect((await office.ask('GET', path)).status, path).toBe(200)
    }
    const old = `/v1/media/delete?before_ts=${Date.now()}&keep_profiles=true`
    expect((await office.ask('POST', old, {})).status).toBe(200)
    const [state] = await db.query<{ key: string }>(
      `SELECT ${decodable('content')} ->> 'key' AS key FROM account_data WHERE type = 'm.secret_storage.default_key'`,
    )
    expect(state?.key).toBe(' ')
  })
})
