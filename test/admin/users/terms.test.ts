import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Account, createRoom, type Json, join } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { type Office, openOffice } from '../office.ts'

let office: Office
let alice: Account
let bob: Account

const enc = encodeURIComponent
const whoami = (who: Account) => office.api.request('GET', '/account/whoami', { token: who.token })

beforeAll(async () => {
  office = await openOffice()
  alice = await office.person('alice')
  bob = await office.person('bob')
})

afterAll(() => office.close())

test('an account whose time is over is locked, and unlocked when it is renewed', async () => {
  const renew = (body: object) => office.ask('POST', '/v1/account_validity/validity', body)
  const past = Date.now() - 1
  expect((await renew({ user_id: alice.userId, expiration_ts: past })).body).toEqual({ expiration_ts: past })
  const locked = await waitUntil('the lock', async () => {
    const answer = await whoami(alice)
    return answer.status === 401 && answer.body
  })
  expect(locked.errcode).toBe('M_USER_LOCKED')
  expect((await office.call('GET', `/v2/users/${enc(alice.userId)}`)).expiration_ts).toBe(past)
  expect((await renew({ user_id: alice.userId })).body.expiration_ts).toBeGreaterThan(Date.now())
  expect((await whoami(alice)).status).toBe(200)
  // Who was locked by an operator stays locked.
  await office.api.call('PUT', `/_matrix/client/v1/admin/lock/${enc(bob.userId)}`, {
    token: office.boss.token,
    body: { locked: true },
  })
  for (let times = 0; times < 2; times++) await renew({ user_id: bob.userId })
  expect((await whoami(bob)).body.errcode).toBe('M_USER_LOCKED')
  await office.api.call('PUT', `/_matrix/client/v1/admin/lock/${enc(bob.userId)}`, {
    token: office.boss.token,
    body: { locked: false },
  })
  const boss = await renew({ user_id: office.boss.userId, expiration_ts: past })
  expect([boss.status, boss.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
})

test('rooms joined and invitations sent are counted from a time on', async () => {
  const rooms = [await createRoom(office.api, alice.token), await createRoom(office.api, alice.token)]
  for (const room of rooms) {
    const body = { user_id: bob.userId }
    await office.api.call('POST', `/rooms/${enc(room)}/invite`, { token: alice.token, body })
  }
  await join(office.api, bob.token, rooms[0]!)
  await office.api.call('POST', `/rooms/${enc(rooms[0]!)}/leave`, { token: bob.token, body: {} })
  const count = async (who: Account, path: string, since: number) =>
    Object.values(await office.call('GET', `/v1/users/${enc(who.userId)}/${path}?from_ts=${since}`))[0]
  const later = Date.now() + 60_000
  expect(await count(alice, 'sent_invite_count', 0)).toBe(2)
  expect(await count(alice, 'sent_invite_count', later)).toBe(0)
  expect(await count(bob, 'sent_invite_count', 0)).toBe(0)
  expect(await count(alice, 'cumulative_joined_room_count', 0)).toBe(2)
  expect(await count(bob, 'cumulative_joined_room_count', 0)).toBe(1)
  expect(await count(bob, 'cumulative_joined_room_count', later)).toBe(0)
})

test('a device is made for a user, and searching shows no password', async () => {
  const path = `/v2/users/${enc(bob.userId)}/devices`
  expect((await office.ask('POST', path, { device_id: 'TABLET' })).status).toBe(201)
  expect((await office.ask('POST', path, { device_id: 'TABLET' })).status).toBe(201)
  const { devices } = await office.call('GET', path)
  expect(devices.filter(({ device_id }: Json) => device_id === 'TABLET')).toHaveLength(1)
  expect((await office.ask('POST', path, { device_id: 'x'.repeat(600) })).body.errcode).toBe('M_INVALID_PARAM')
  const found = await office.call('GET', `/v1/search_users/${enc(office.boss.userId)}?term=ali`)
  expect(found).toEqual([{ name: alice.userId, is_guest: false, admin: false, user_type: null }])
})

test('accounts are listed by what restrains them', async () => {
  await office.call('PUT', `/v1/suspend/${enc(alice.userId)}`, { suspend: true })
  const { users } = await office.call('GET', '/v3/users?suspended=true')
  expect(users.map(({ name }: Json) => name)).toEqual([alice.userId])
  await office.call('PUT', `/v1/suspend/${enc(alice.userId)}`, { suspend: false })
  expect((await office.call('GET', '/v3/users?shadow_banned=true')).total).toBe(0)
  const sorted = await office.call('GET', '/v3/users?order_by=suspended&dir=b&limit=1')
  expect(sorted.users).toHaveLength(1)
})

test('cross-signing keys are replaced without proof while an operator allows it', async () => {
  const path = `/v1/users/${enc(alice.userId)}/_allow_cross_signing_replacement_without_uia`
  const none = await office.ask('POST', path)
  expect([none.status, none.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
  const master = () => ({
    master_key: {
      user_id: alice.userId,
      usage: ['master'],
      keys: Object.fromEntries(
        [randomBytes(32).toString('base64').replace('=', '')].map((key) => [`ed25519:${key}`, key]),
      ),
    },
  })
  const upload = (body: object) =>
    office.api.request('POST', '/keys/device_signing/upload', { token: alice.token, body })
  expect((await upload(master())).status).toBe(200)
  expect((await upload(master())).status).toBe(401)
  const { updatable_without_uia_before_ms: until } = await office.call('POST', path)
  expect(until).toBeGreaterThan(Date.now())
  expect((await upload(master())).status).toBe(200)
  await office.server.database.db.tx((tx) => tx.query('UPDATE account SET keys_open_until = 1'))
  expect((await upload(master())).status).toBe(401)
})
