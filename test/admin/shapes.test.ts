import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Account, createRoom, join } from '../support/api.ts'
import { fetchFile, uploadFile } from '../support/media.ts'
import { type Office, openOffice } from './office.ts'

/** Where existing tools could trip over a difference from the texts that are published about this API. */
let office: Office
let alice: Account

const enc = encodeURIComponent

beforeAll(async () => {
  office = await openOffice()
  alice = await office.person('alice')
})
afterAll(() => office.close())

const upload = (bytes: string) => uploadFile(office.server.baseUrl, alice.token, bytes, { type: 'text/plain' })

test('administrators get hidden files if they say so, nobody else does, and each look is in the record', async () => {
  const name = await upload('something bad')
  await office.call('POST', `/v1/media/quarantine/${name}`, {})
  const get = (token: string, query: string, kind = 'download') =>
    fetchFile(`${office.server.baseUrl}/_matrix/client/v1/media/${kind}/${name}${query}`, { token })
  const bypass = '?admin_unsafely_bypass_quarantine=true'
  expect((await get(office.boss.token, '')).status).toBe(404)
  expect((await get(alice.token, bypass)).status).toBe(404)
  expect((await get(office.boss.token, '?admin_unsafely_bypass_quarantine=false')).status).toBe(404)
  expect((await get(office.boss.token, bypass)).status).toBe(200)
  expect((await get(office.boss.token, `/name.txt${bypass}`)).status).toBe(200)
  const { acts } = await office.call('GET', `/_hearth/admin/v1/acts?target=${enc(`mxc://${name}`)}`)
  const looks = acts.filter(({ act }: { act: string }) => act === 'look at a hidden file')
  expect(looks).toHaveLength(2)
  expect(looks[0]).toMatchObject({ actor: office.boss.userId, outcome: 'done' })
})

test('of a user’s files only as many are deleted as asked for, in the order asked for', async () => {
  const bob = await office.person('bob')
  const sizes = [3, 1, 4, 2]
  for (const size of sizes) await uploadFile(office.server.baseUrl, bob.token, 'x'.repeat(size), { type: 'text/plain' })
  const path = `/v1/users/${enc(bob.userId)}/media`
  const left = async () => {
    const { media } = await office.call('GET', `${path}?order_by=media_length`)
    return media.map(({ media_length }: { media_length: number }) => media_length)
  }
  expect(await office.call('DELETE', `${path}?limit=1&order_by=media_length&dir=b`)).toMatchObject({ total: 1 })
  expect(await left()).toEqual([1, 2, 3])
  // The newest first, where nothing is said.
  expect(await office.call('DELETE', `${path}?limit=1`)).toMatchObject({ total: 1 })
  expect(await left()).toEqual([1, 3])
  expect(await office.call('DELETE', path)).toMatchObject({ total: 2 })
})

test.each([
  ['POST', '/v1/purge_media_cache?before_ts=1700000000'],
  ['POST', '/v1/media/delete?before_ts=1700000000'],
  ['GET', '/v1/statistics/users/media?from_ts=5&until_ts=5'],
  ['GET', '/v1/scheduled_tasks?status=nonsense'],
])('%s %s is refused: it was meant otherwise', async (method, path) => {
  const { status, body } = await office.ask(method, path)
  expect([status, body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
})

test('tasks are found by their status, by either name of the parameter', async () => {
  const room = await createRoom(office.api, alice.token, {})
  await office.call('DELETE', `/v1/rooms/${enc(room)}`, {})
  for (const name of ['status', 'job_status']) {
    const found = async (state: string) => {
      const query = `resource_id=${enc(room)}&${name}=${state}`
      return (await office.call('GET', `/v1/scheduled_tasks?${query}`)).scheduled_tasks
    }
    expect(await found('cancelled')).toEqual([])
    expect(await found('complete')).toMatchObject([{ action: 'shutdown_and_purge_room', status: 'complete' }])
  }
})

test('a room that nobody knows is blocked by its removal', async () => {
  const room = '!unknown:elsewhere.example'
  const path = `/v1/rooms/${enc(room)}`
  expect((await office.ask('DELETE', path, { block: false })).status).toBe(404)
  expect(await office.call('DELETE', path, { block: true, message: null, room_name: null })).toEqual({
    kicked_users: [],
    failed_to_kick_users: [],
    local_aliases: [],
    new_room_id: null,
  })
  expect(await office.call('GET', `${path}/block`)).toEqual({ block: true, user_id: office.boss.userId })
})

test('null stands for what is not said', async () => {
  const redact = { rooms: null, reason: null, limit: null, use_admin: null, before_ts: null, after_ts: null }
  expect(await office.call('POST', `/v1/user/${enc(alice.userId)}/redact`, redact)).toHaveProperty('redact_id')
  const validity = { user_id: alice.userId, expiration_ts: null, enable_renewal_emails: null }
  const { expiration_ts } = await office.call('POST', '/v1/account_validity/validity', validity)
  expect(expiration_ts).toBeGreaterThan(Date.now())
  const device = `/v2/users/${enc(alice.userId)}/devices/${enc(alice.deviceId)}`
  await office.call('PUT', device, { display_name: 'Named' })
  await office.call('PUT', device)
  expect(await office.call('GET', device)).toMatchObject({ display_name: 'Named', dehydrated: false })
  expect(await office.call('POST', '/v1/background_updates/enabled', {})).toEqual({ enabled: true })
  expect(
    await office.call('POST', '/v1/background_updates/start_job', { job_name: 'populate_stats_process_rooms' }),
  ).toEqual({})
})

test('a dehydrated device is shown as one', async () => {
  await office.call('POST', `/v2/users/${enc(alice.userId)}/devices`, { device_id: 'SLEEPER' })
  const row = `INSERT INTO dehydrated_device (user_nid, device_id, device_data)
    SELECT user_nid, 'SLEEPER', '{}' FROM matrix_user WHERE user_id = $1`
  await office.server.database.db.tx((tx) => tx.query(row, [alice.userId]))
  const { devices } = await office.call('GET', `/v2/users/${enc(alice.userId)}/devices`)
  const sleeping = devices.filter(({ dehydrated }: { dehydrated: boolean }) => dehydrated)
  expect(sleeping.map(({ device_id }: { device_id: string }) => device_id)).toEqual(['SLEEPER'])
})

test('what a user did is counted also for users of other servers', async () => {
  const room = await createRoom(office.api, alice.token, { preset: 'public_chat' })
  await join(office.api, (await office.person('carol')).token, room)
  const stranger = enc('@nobody:elsewhere.example')
  expect(await office.call('GET', `/v1/users/${stranger}/sent_invite_count?from_ts=0`)).toEqual({ invite_count: 0 })
  expect(await office.call('GET', `/v1/users/${stranger}/cumulative_joined_room_count?from_ts=0`)).toEqual({
    cumulative_joined_room_count: 0,
  })
  const carol = enc('@carol:localhost')
  expect(await office.call('GET', `/v1/users/${carol}/cumulative_joined_room_count?from_ts=0`)).toEqual({
    cumulative_joined_room_count: 1,
  })
})

test('a lifted limit of zero is shown as it was set, and one that says nothing of the burst has one of one', async () => {
  const path = `/v1/users/${enc(alice.userId)}/override_ratelimit`
  const none = { messages_per_second: 0, burst_count: 0 }
  expect(await office.call('POST', path, none)).toEqual(none)
  expect(await office.call('GET', path)).toEqual(none)
  const some = { messages_per_second: 5, burst_count: 1 }
  expect(await office.call('POST', path, { messages_per_second: 5 })).toEqual(some)
  expect(await office.call('GET', path)).toEqual(some)
  expect(await office.call('DELETE', path)).toEqual({})
})

test('an account has the fields that tools look for, and is not deactivated and locked at once', async () => {
  const path = `/v2/users/${enc(alice.userId)}`
  expect(await office.call('GET', path)).toMatchObject({
    consent_version: null,
    consent_ts: null,
    consent_server_notice_sent: null,
    user_type: null,
  })
  const both = await office.ask('PUT', path, { deactivated: true, locked: true })
  expect([both.status, both.body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
  expect(await office.call('GET', path)).toMatchObject({ deactivated: false, locked: false })
})
