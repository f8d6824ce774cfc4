import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, createRoom, type Json, join, login, PASSWORD, sendText } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { macOf, type Office, openOffice } from '../office.ts'

let office: Office
beforeAll(async () => {
  office = await openOffice({ server_notices: { localpart: 'notices' } })
})
afterAll(() => office.close())

const enc = encodeURIComponent
const deactivate = (userId: string, body?: object) => office.call('POST', `/v1/deactivate/${userId}`, body)
const membersOf = async (room: string): Promise<string[]> =>
  (await office.call('GET', `/v1/rooms/${enc(room)}/members`)).members

test('an account ends: its tokens at once, its rooms soon, its addresses too', async () => {
  const alice = await office.person('alice')
  const host = await office.person('host')
  const room = await createRoom(office.api, host.token, { preset: 'public_chat' })
  await join(office.api, alice.token, room)
  await office.call('POST', '/v1/send_server_notice', { user_id: alice.userId, content: { body: 'x' } })
  await office.call('PUT', `/v2/users/${alice.userId}`, {
    threepids: [{ medium: 'email', address: 'alice@example.org' }],
  })
  expect(await deactivate(alice.userId)).toEqual({ id_server_unbind_result: 'success' })
  expect((await office.api.request('GET', '/account/whoami', { token: alice.token })).status).toBe(401)
  await waitUntil('the user to be out of the room', async () => !(await membersOf(room)).includes(alice.userId))
  await waitUntil('the user to be out of all rooms', async () => {
    const { memberships } = await office.call('GET', `/v1/users/${alice.userId}/memberships`)
    return Object.values(memberships).every((membership) => membership === 'leave')
  })
  expect(await office.call('GET', `/v2/users/${alice.userId}`)).toMatchObject({
    deactivated: true,
    erased: false,
    threepids: [],
  })
  const names = async (query: string) =>
    (await office.call('GET', `${query}&name=alice`)).users.map(({ name }: Json) => name)
  expect(await names('/v2/users?limit=9')).toEqual([])
  expect(await names('/v2/users?deactivated=true')).toEqual([alice.userId])
  expect(await names('/v3/users?deactivated=true')).toEqual([alice.userId])
  expect(await names('/v3/users?deactivated=false')).toEqual([])
})

test('an account can be erased, also later', async () => {
  const bob = await office.person('bob')
  await office.call('PUT', `/v2/users/${bob.userId}`, { displayname: 'Bob' })
  await deactivate(bob.userId)
  expect(await office.call('GET', `/v2/users/${bob.userId}`)).toMatchObject({ erased: false })
  await deactivate(bob.userId, { erase: true })
  expect(await office.call('GET', `/v2/users/${bob.userId}`)).toMatchObject({ erased: true, displayname: null })
})

describe('an account is opened again', () => {
  const isFinished = async () =>
    (await office.server.database.db.query('SELECT 1 AS one FROM deactivation')).length === 0
  const reopen = (userId: string, body: object = { password: 'another horse battery' }) =>
    office.ask('PUT', `/v2/users/${userId}`, { deactivated: false, ...body })

  test('by a new password: with its profile, and without what it could do before', async () => {
    const eve = await office.person('eve')
    await office.call('PUT', `/v1/users/${eve.userId}/admin`, { admin: true })
    await office.call('PUT', `/v2/users/${eve.userId}`, {
      displayname: 'Eve',
      threepids: [{ medium: 'email', address: 'eve@example.org' }],
    })
    const room = await createRoom(office.api, office.boss.token, { preset: 'public_chat' })
    await join(office.api, eve.token, room)
    await deactivate(eve.userId)
    await waitUntil('the end of the account', isFinished)
    expect((await reopen(eve.userId, { password: 'x' })).body.errcode).toBe('M_WEAK_PASSWORD')
    const { status, body } = await reopen(eve.userId)
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({ deactivated: false, displayname: 'Eve', admin: false, threepids: [] }),
    ])
    expect((await office.api.request('GET', '/account/whoami', { token: eve.token })).status).toBe(401)
    await expect(login(office.api, 'eve')).rejects.toMatchObject({ status: 403 })
    const { token } = await login(office.api, 'eve', 'another horse battery')
    expect((await office.api.call('GET', '/joined_rooms', { token })).joined_rooms).toEqual([])
    await join(office.api, token, room)
    const found = await office.api.call('POST', '/user_directory/search', {
      token: office.boss.token,
      body: { search_term: 'eve' },
    })
    expect(found.results.map(({ user_id }: Json) => user_id)).toContain(eve.userId)
    // Once more, and it ends as it did the first time.
    await deactivate(eve.userId)
    expect((await office.api.request('GET', '/account/whoami', { token })).status).toBe(401)
  })

  test('also after an erasure: what is written then is read by all', async () => {
    const fay = await office.person('fay')
    const room = await createRoom(office.api, office.boss.token, { preset: 'public_chat' })
    await join(office.api, fay.token, room)
    await sendText(office.api, fay.token, room, 'f1', 'before')
    await deactivate(fay.userId, { erase: true })
    await waitUntil('the end of the account', isFinished)
    expect((await reopen(fay.userId)).body).toMatchObject({ deactivated: false, erased: false, displayname: null })
    const again = await login(office.api, 'fay', 'another horse battery')
    await join(office.api, again.token, room)
    await sendText(office.api, again.token, room, 'f2', 'after')
    const gus = await office.person('gus')
    await join(office.api, gus.token, room)
    const { chunk } = await office.api.call('GET', `/rooms/${enc(room)}/messages?dir=b&limit=20`, { token: gus.token })
    expect(chunk.map(({ content }: Json) => content.body).filter(Boolean)).toEqual(['after', 'before'])
  })

  test('not while it is still leaving its rooms', async () => {
    const hal = await office.person('hal')
    const { db } = office.server.database
    await deactivate(hal.userId)
    await waitUntil('the end of the account', isFinished)
    await db.tx((tx) =>
      tx.query(
        `INSERT INTO deactivation (user_nid, requested_at, due_at)
         SELECT user_nid, 1, 9000000000000 FROM matrix_user WHERE user_id = '@hal:localhost'`,
      ),
    )
    expect((await reopen(hal.userId)).status).toBe(409)
    await db.tx((tx) => tx.query('DELETE FROM deactivation'))
    expect((await reopen(hal.userId)).status).toBe(200)
  })

  test('without the sessions that a deactivation left that was given up', async () => {
    const jim = await office.person('jim')
    const { db } = office.server.database
    await db.tx((tx) =>
      tx.query(
        "UPDATE account SET deactivated_at = 1 FROM matrix_user u WHERE u.user_nid = account.user_nid AND u.user_id = '@jim:localhost'",
      ),
    )
    expect((await reopen(jim.userId)).status).toBe(200)
    expect((await office.api.request('GET', '/account/whoami', { token: jim.token })).status).toBe(401)
  })

  test('by several requests at once', async () => {
    const ida = await office.person('ida')
    await deactivate(ida.userId)
    await waitUntil('the end of the account', isFinished)
    const answers = await Promise.all([reopen(ida.userId), reopen(ida.userId), reopen(ida.userId)])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    const { token } = await login(office.api, 'ida', 'another horse battery')
    expect((await office.api.request('GET', '/account/whoami', { token })).status).toBe(200)
  })
})

test('of nobody, and of others’ users, there is nothing to end', async () => {
  expect((await office.ask('POST', '/v1/deactivate/@nobody:localhost', {})).status).toBe(404)
  expect((await office.ask('POST', '/v1/deactivate/@x:other.example', {})).status).toBe(400)
})

describe('a deactivated user does not come back', () => {
  let carol: Account
  let refreshToken: string
  let loginToken: string
  beforeAll(async () => {
    carol = await office.person('carol')
    await office.call('PUT', `/v1/users/${carol.userId}/admin`, { admin: true })
    const identifier = { type: 'm.id.user', user: 'carol' }
    const body = { type: 'm.login.password', identifier, password: PASSWORD, refresh_token: true }
    refreshToken = (await office.api.call('POST', '/login', { body })).refresh_token
    const auth = { type: 'm.login.password', identifier, password: PASSWORD }
    const asked = await office.api.request('POST', '/_matrix/client/v1/login/get_token', {
      token: carol.token,
      body: { auth },
    })
    loginToken = asked.body.login_token
    expect(loginToken).toBeTypeOf('string')
    expect((await office.ask('PUT', `/v2/users/${carol.userId}`, { deactivated: true })).body.deactivated).toBe(true)
  })

  test.each<[string, () => Promise<{ status: number; body: Json }>]>([
    ['by the token', () => office.api.request('GET', '/account/whoami', { token: carol.token })],
    ['as an administrator', () => office.ask('GET', '/v2/users', undefined, carol.token)],
    ['by the refresh token', () => office.api.request('POST', '/refresh', { body: { refresh_token: refreshToken } })],
    [
      'by the password',
      () => {
        const identifier = { type: 'm.id.user', user: 'carol' }
        const body = { type: 'm.login.password', identifier, password: PASSWORD }
        return office.api.request('POST', '/login', { body })
      },
    ],
    [
      'by a login token',
      () => office.api.request('POST', '/login', { body: { type: 'm.login.token', token: loginToken } }),
    ],
    [
      'by registering again',
      () => {
        const body = { username: 'carol', password: PASSWORD, auth: { type: 'm.login.dummy' } }
        return office.api.request('POST', '/register', { body })
      },
    ],
    [
      'by the shared secret',
      async () => {
        const { nonce } = await office.api.call('GET', '/_synapse/admin/v1/register')
        const mac = macOf(nonce, 'carol', PASSWORD, false)
        const body = { nonce, username: 'carol', password: PASSWORD, mac }
        return office.api.request('POST', '/_synapse/admin/v1/register', { body })
      },
    ],
    [
      'by a password that is set',
      () => office.ask('POST', `/v1/reset_password/${carol.userId}`, { new_password: PASSWORD }),
    ],
    ['by being changed', () => office.ask('PUT', `/v2/users/${carol.userId}`, { password: PASSWORD })],
    [
      'by being opened again without a password',
      () => office.ask('PUT', `/v2/users/${carol.userId}`, { deactivated: false }),
    ],
    ['by being an administrator', () => office.ask('PUT', `/v1/users/${carol.userId}/admin`, { admin: true })],
    ['by a login on their behalf', () => office.ask('POST', `/v1/users/${carol.userId}/login`, {})],
    [
      'by a notice',
      () => office.ask('POST', '/v1/send_server_notice', { user_id: carol.userId, content: { body: 'x' } }),
    ],
    [
      'into a room',
      async () => {
        const room = await createRoom(office.api, office.boss.token, { preset: 'public_chat' })
        return office.ask('POST', `/v1/join/${enc(room)}`, { user_id: carol.userId })
      },
    ],
  ])('%s', async (_, attempt) => {
    const { status, body } = await attempt()
    expect([400, 401, 403], JSON.stringify(body)).toContain(status)
    expect(await office.call('GET', `/v2/users/${carol.userId}`)).toMatchObject({ deactivated: true, admin: false })
  })

  test('while passwords are set and the account ends at the same time', async () => {
    const dora = await office.person('dora')
    const set = () => office.ask('POST', `/v1/reset_password/${dora.userId}`, { new_password: PASSWORD })
    await Promise.all([set(), deactivate(dora.userId), set(), set()])
    const identifier = { type: 'm.id.user', user: 'dora' }
    const body = { type: 'm.login.password', identifier, password: PASSWORD }
    expect((await office.api.request('POST', '/login', { body })).status).toBe(403)
    const [row] = await office.server.database.db.query(
      "SELECT password_hash FROM account JOIN matrix_user USING (user_nid) WHERE user_id = '@dora:localhost'",
    )
    expect(row).toEqual({ password_hash: null })
  })
})
