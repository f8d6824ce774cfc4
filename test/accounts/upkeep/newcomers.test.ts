import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Office, openOffice } from '../../admin/office.ts'
import { type Account, createRoom, type Json, PASSWORD, register } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'

let office: Office
let host: Account
let secret: string

const enc = encodeURIComponent
const roomsOf = async ({ token }: Account): Promise<string[]> =>
  (await office.api.call('GET', '/joined_rooms', { token })).joined_rooms
const roomOf = async (alias: string): Promise<string | undefined> =>
  (await office.api.request('GET', `/directory/room/${enc(alias)}`, { token: host.token })).body.room_id
const inside = (who: Account, rooms: readonly (string | undefined)[]) =>
  waitUntil(`${who.userId} in ${rooms.length} rooms`, async () => {
    const joined = new Set(await roomsOf(who))
    return rooms.every((room) => joined.has(room!)) && joined.size === rooms.length
  })
const left = async () => (await office.server.database.db.query('SELECT 1 FROM newcomer')).length
const guest = async (): Promise<Account> => {
  const body = await office.api.call('POST', '/register?kind=guest', { body: {} })
  return { userId: body.user_id, token: body.access_token, deviceId: body.device_id }
}

beforeAll(async () => {
  office = await openOffice()
  host = await office.person('host')
  secret = await createRoom(office.api, host.token, { preset: 'private_chat', room_alias_name: 'members-only' })
  const rooms = ['#town-hall:localhost', '#members-only:localhost', '#nobody-knows:127.0.0.1:1']
  await office.server.restart({ registration: { auto_join: { rooms, host: 'host' } } } as never)
})

afterAll(() => office.close())

describe('a newcomer', () => {
  test('is led into rooms: one that is missing is made, and one that is closed invites them', async () => {
    const everybody = await Promise.all(['ada', 'bea', 'cleo'].map((name) => office.person(name)))
    const hall = await waitUntil('the room', () => roomOf('#town-hall:localhost'))
    for (const person of everybody) await inside(person, [hall, secret])
    expect(await office.call('GET', `/v1/rooms/${enc(hall)}`)).toMatchObject({
      name: 'Town hall',
      creator: host.userId,
      join_rules: 'public',
    })
  })

  test('is tried again with what cannot be reached, by a row that survives a restart', async () => {
    const dora = await office.person('dora')
    await inside(dora, [await roomOf('#town-hall:localhost'), secret])
    // The third room's server is away.
    expect(await left()).toBeGreaterThan(0)
    await office.server.restart({ registration: { auto_join: { rooms: ['#town-hall:localhost'] } } } as never)
    await office.server.database.db.tx((tx) => tx.query('UPDATE newcomer SET due_at = 0'))
    await waitUntil('the end', async () => (await left()) === 0)
  })

  test('may be made by an operator', async () => {
    const hall = await roomOf('#town-hall:localhost')
    await office.call('PUT', '/v2/users/@emma:localhost', { password: PASSWORD })
    const { access_token: token } = await office.api.call('POST', '/login', {
      body: { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'emma' }, password: PASSWORD },
    })
    await inside({ userId: '@emma:localhost', token, deviceId: '' }, [hall])
  })

  test('who is a guest is led only if that is said, and where guests may enter', async () => {
    const hall = await roomOf('#town-hall:localhost')
    const quiet = await guest()
    const open = await createRoom(office.api, host.token, {
      preset: 'public_chat',
      room_alias_name: 'open',
      initial_state: [{ type: 'm.room.guest_access', state_key: '', content: { guest_access: 'can_join' } }],
    })
    const rooms = ['#town-hall:localhost', '#open:localhost']
    await office.server.restart({ registration: { auto_join: { rooms, guests: true } } } as never)
    const led = await guest()
    await inside(led, [open])
    expect(await roomsOf(quiet)).toEqual([])
    await waitUntil('the end', async () => (await left()) === 0)
    // Who becomes a user is a newcomer then.
    const body = { username: led.userId.slice(1).split(':')[0], password: PASSWORD, guest_access_token: led.token }
    const flow = await office.api.request('POST', '/register', { body })
    const auth = { type: 'm.login.dummy', session: flow.body.session }
    const kept = await office.api.call('POST', '/register', { body: { ...body, auth } })
    await inside({ userId: led.userId, token: kept.access_token, deviceId: '' }, [hall, open])
  })

  test('who waits for an operator is led when that one has decided', async () => {
    const hall = await roomOf('#town-hall:localhost')
    const rooms = ['#town-hall:localhost']
    await office.server.restart({ registration: { approval: true, auto_join: { rooms } } } as never)
    const [fay, gwen] = [await register(office.api, 'fay'), await register(office.api, 'gwen')]
    const memberships = async ({ userId }: Account): Promise<Json> =>
      (await office.call('GET', `/v1/users/${enc(userId)}/joined_rooms`)).joined_rooms
    await waitUntil('a look at them', async () => {
      const due = await office.server.database.db.query('SELECT 1 FROM newcomer WHERE due_at > $1', [
        Date.now() + 60_000,
      ])
      return due.length === 2
    })
    expect(await memberships(fay)).toEqual([])
    await office.call('POST', `/_hearth/admin/v1/approvals/${enc(fay.userId)}/approve`)
    await waitUntil('the room', async () => (await memberships(fay)).includes(hall))
    await office.call('POST', `/_hearth/admin/v1/approvals/${enc(gwen.userId)}/refuse`)
    await waitUntil('the end', async () => (await left()) === 0)
    expect(await memberships(gwen)).toEqual([])
  })

  test('who is locked is led when they are let in again', async () => {
    const hall = await roomOf('#town-hall:localhost')
    await office.server.restart({ registration: { approval: false, auto_join: { rooms: [] } } } as never)
    const hope = await register(office.api, 'hope')
    const lock = (locked: boolean) =>
      office.api.call('PUT', `/_matrix/client/v1/admin/lock/${enc(hope.userId)}`, {
        token: office.boss.token,
        body: { locked },
      })
    await lock(true)
    const due = 'UPDATE newcomer SET due_at = 0'
    await office.server.database.db.tx((tx) =>
      tx.query('INSERT INTO newcomer (user_nid, due_at) SELECT user_nid, 0 FROM matrix_user WHERE user_id = $1', [
        hope.userId,
      ]),
    )
    await office.server.restart({ registration: { auto_join: { rooms: ['#town-hall:localhost'] } } } as never)
    await waitUntil('a look at her', async () => {
      const rows = await office.server.database.db.query('SELECT 1 FROM newcomer WHERE due_at > $1', [
        Date.now() + 60_000,
      ])
      return rows.length === 1
    })
    await lock(false)
    expect(await roomsOf(hope)).toEqual([])
    await office.server.database.db.tx((tx) => tx.query(due))
    await inside(hope, [hall])
    await waitUntil('the end', async () => (await left()) === 0)
  })
})
