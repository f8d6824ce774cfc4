import { afterAll, beforeAll, expect, test } from 'vitest'
import { createServerNotices, type NoticeParts } from '../../../src/domain/admin/server-notices.ts'
import { type Account, createRoom, type Json, syncPath } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { type Office, openOffice } from '../office.ts'

let office: Office
let alice: Account
beforeAll(async () => {
  office = await openOffice({
    server_notices: { localpart: 'notices', display_name: 'The Server', room_name: 'Notices', avatar_url: 'mxc://a/b' },
  })
  alice = await office.person('alice')
})
afterAll(() => office.close())

const enc = encodeURIComponent
const text = (body: string) => ({ msgtype: 'm.text', body })
const sync = (token: string): Promise<Json> => office.api.call('GET', syncPath({}), { token })
const notify = (userId: string, body: string, more: object = {}) =>
  office.call('POST', '/v1/send_server_notice', { user_id: userId, content: text(body), ...more })

test('the first notice invites its user to a room of their own, tagged, which they read and do not leave', async () => {
  const { event_id } = await notify(alice.userId, 'Welcome')
  const first = await sync(alice.token)
  const [room] = Object.keys(first.rooms.invite)
  const state = first.rooms.invite[room!].invite_state.events
  expect(state).toContainEqual(expect.objectContaining({ type: 'm.room.name', content: { name: 'Notices' } }))
  const at = `/rooms/${enc(room!)}`
  const { token } = alice
  for (const [method, path, body] of [
    ['POST', `${at}/leave`, {}],
    ['PUT', `${at}/state/m.room.member/${alice.userId}`, { membership: 'leave' }],
  ] as const) {
    // Rejecting the invitation, then leaving the room: M_CANNOT_LEAVE_SERVER_NOTICE_ROOM of seed 2's list of errors.
    expect(await office.api.request(method, path, { token, body })).toMatchObject({
      status: 403,
      body: { errcode: 'M_CANNOT_LEAVE_SERVER_NOTICE_ROOM' },
    })
  }
  await office.api.call('POST', `${at}/join`, { token, body: {} })
  expect((await office.api.request('POST', `${at}/leave`, { token, body: {} })).body.errcode).toBe(
    'M_CANNOT_LEAVE_SERVER_NOTICE_ROOM',
  )
  const joined = (await sync(token)).rooms.join[room!]
  expect(joined.account_data.events).toContainEqual({ type: 'm.tag', content: { tags: { 'm.server_notice': {} } } })
  const notice = joined.timeline.events.find((event: Json) => event.event_id === event_id)
  expect(notice).toMatchObject({ sender: '@notices:localhost', content: { body: 'Welcome' } })
  const members = await office.api.call('GET', `${at}/joined_members`, { token })
  expect(members.joined['@notices:localhost']).toEqual({ display_name: 'The Server', avatar_url: 'mxc://a/b' })
  expect((await office.api.request('PUT', `${at}/send/m.room.message/1`, { token, body: text('but') })).status).toBe(
    403,
  )
})

test('B17: its room may be left once it is read, and not before the next is', async () => {
  const carl = await office.person('carl')
  const { token } = carl
  const { event_id } = await notify(carl.userId, 'Read me')
  const [room] = Object.keys((await sync(token)).rooms.invite)
  const at = `/rooms/${enc(room!)}`
  const leave = () => office.api.request('POST', `${at}/leave`, { token, body: {} })
  const read = (id: string) => office.api.call('POST', `${at}/receipt/m.read/${enc(id)}`, { token, body: {} })
  await office.api.call('POST', `${at}/join`, { token, body: {} })
  expect((await leave()).body.errcode).toBe('M_CANNOT_LEAVE_SERVER_NOTICE_ROOM')
  await read(event_id)
  const { event_id: second } = await notify(carl.userId, 'And this')
  expect((await leave()).body.errcode).toBe('M_CANNOT_LEAVE_SERVER_NOTICE_ROOM')
  await read(second)
  expect(await leave()).toEqual({ status: 200, body: {} })
  expect((await sync(token)).rooms?.join?.[room!]).toBeUndefined()
})

test('later ones come to the same room, many at once too', async () => {
  const bob = await office.person('bob')
  await Promise.all(Array.from({ length: 8 }, (_, index) => notify(bob.userId, `notice ${index}`)))
  const { rooms } = await sync(bob.token)
  expect(Object.keys(rooms.invite)).toHaveLength(1)
  const [room] = Object.keys(rooms.invite)
  await office.api.call('POST', `/rooms/${enc(room!)}/join`, { token: bob.token, body: {} })
  const { chunk } = await office.api.call('GET', `/rooms/${enc(room!)}/messages?dir=b&limit=50`, { token: bob.token })
  const bodies = chunk.filter((event: Json) => event.type === 'm.room.message').map((event: Json) => event.content.body)
  expect(bodies.sort()).toEqual(Array.from({ length: 8 }, (_, index) => `notice ${index}`))
})

test('a transaction is sent once', async () => {
  const carol = await office.person('carol')
  const body = { user_id: carol.userId, content: text('once') }
  const send = () => office.call('PUT', '/v1/send_server_notice/txn-1', body)
  const [first, second] = [await send(), await send()]
  expect(second).toEqual(first)
  await office.server.restart()
  expect(await send()).toEqual(first)
})

test('other types, and state, can be sent', async () => {
  const dora = await office.person('dora')
  await notify(dora.userId, 'x', { type: 'org.example.notice' })
  await notify(dora.userId, 'x', { type: 'm.room.topic', state_key: '', content: { topic: 'What you should know' } })
  const [room] = Object.keys((await sync(dora.token)).rooms.invite)
  const { state } = await office.call('GET', `/v1/rooms/${enc(room!)}/state?type=m.room.topic`)
  expect(state).toMatchObject([{ content: { topic: 'What you should know' } }])
})

test('a removed room is made again for the next notice', async () => {
  const eve = await office.person('eve')
  await notify(eve.userId, 'one')
  const [room] = Object.keys((await sync(eve.token)).rooms.invite)
  const { delete_id } = await office.call('DELETE', `/v2/rooms/${enc(room!)}`, {})
  const statusOf = async () => (await office.call('GET', `/v2/rooms/delete_status/${delete_id}`)).status
  await waitUntil('the removal', async () => (await statusOf()) === 'complete')
  await notify(eve.userId, 'two')
  const [next] = Object.keys((await sync(eve.token)).rooms.invite)
  expect(next).not.toBe(room)
})

test.each([
  ['@nobody:localhost', 404],
  ['@x:other.example', 400],
  ['@notices:localhost', 400],
  ['x', 400],
])('a notice to %s is refused', async (user_id, status) => {
  const answer = await office.ask('POST', '/v1/send_server_notice', { user_id, content: text('x') })
  expect(answer.status).toBe(status)
})

test('the name is taken, and nobody logs in by it', async () => {
  const body = { username: 'notices', password: 'a password of mine', auth: { type: 'm.login.dummy' } }
  expect((await office.api.request('POST', '/register', { body })).body.errcode).toBe('M_EXCLUSIVE')
  const login = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'notices' }, password: '' }
  expect((await office.api.request('POST', '/login', { body: login })).status).toBe(403)
})

test('other rooms are left as ever', async () => {
  const room = await createRoom(office.api, alice.token)
  await office.api.call('POST', `/rooms/${enc(room)}/leave`, { token: alice.token, body: {} })
})

test('without the option there are none', async () => {
  const own = await openOffice()
  try {
    const user = await own.person('user')
    const { status, body } = await own.ask('POST', '/v1/send_server_notice', { user_id: user.userId, content: {} })
    expect([status, body.error]).toEqual([400, expect.stringContaining('server_notices.localpart')])
  } finally {
    await own.close()
  }
})

test('the account of a person is not taken for it', async () => {
  const { config, database } = office.server
  const server_notices = { ...config.server_notices, localpart: 'alice' }
  const parts = { config: { ...config, server_notices }, db: database.db, clock: Date } as unknown as NoticeParts
  await expect(createServerNotices(parts).prepare()).rejects.toThrow('server_notices.localpart: @alice:localhost')
})
