import { afterAll, beforeAll, expect, test } from 'vitest'
import { createStaleDevices } from '../../../src/domain/accounts/upkeep/stale-devices.ts'
import { deleteDevices } from '../../../src/store/accounts/devices.ts'
import { type Office, openOffice } from '../../admin/office.ts'
import { type Account, type Json, login } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'

let office: Office
let alice: Account

const DAY_MS = 24 * 3_600_000
const enc = encodeURIComponent
const sql = (text: string, values: readonly (string | number)[] = []) =>
  office.server.database.db.tx((tx) => tx.query<Json>(text, values))
const devicesOf = async (who: Account): Promise<string[]> =>
  (await office.call('GET', `/v2/users/${enc(who.userId)}/devices`)).devices.map(({ device_id }: Json) => device_id)
/** As if a device had last been used then. */
const seen = (device: string, at: number) =>
  sql('UPDATE device SET last_seen_at = $2, created_at = least(created_at, $2) WHERE device_id = $1', [device, at])

/** As if the server had run on these days alone, of so many days ago. */
async function ranOn(daysAgo: readonly number[]): Promise<void> {
  const today = Math.floor(Date.now() / DAY_MS)
  await sql('DELETE FROM server_day')
  for (const ago of daysAgo) await sql('INSERT INTO server_day (day) VALUES ($1)', [today - ago])
}

beforeAll(async () => {
  office = await openOffice()
  alice = await office.person('alice')
})

afterAll(() => office.close())

test('devices that nobody uses are removed where an operator says so, but those of bridges and dehydrated ones', async () => {
  const [old, older] = [await login(office.api, 'alice'), await login(office.api, 'alice')]
  const bridged = await office.person('bridged')
  const waiting = await login(office.api, 'alice')
  const now = Date.now()
  await seen(old.deviceId, now - 29 * DAY_MS)
  await seen(older.deviceId, now - 31 * DAY_MS)
  await seen(bridged.deviceId, now - 900 * DAY_MS)
  await seen(waiting.deviceId, now - 900 * DAY_MS)
  await sql(
    "UPDATE account SET appservice_id = 'bridge' FROM matrix_user u WHERE u.user_nid = account.user_nid AND user_id = $1",
    [bridged.userId],
  )
  await sql(
    "INSERT INTO dehydrated_device (user_nid, device_id, device_data) SELECT user_nid, device_id, '{}' FROM device WHERE device_id = $1",
    [waiting.deviceId],
  )
  await office.server.restart()
  expect((await devicesOf(alice)).length).toBe(4)
  await ranOn(Array.from({ length: 40 }, (_, index) => index))
  await office.server.restart({ sessions: { remove_devices_after_days: 30 } } as never)
  await waitUntil('its removal', async () => !(await devicesOf(alice)).includes(older.deviceId))
  expect(new Set(await devicesOf(alice))).toEqual(new Set([alice.deviceId, old.deviceId, waiting.deviceId]))
  expect(await devicesOf(bridged)).toEqual([bridged.deviceId])
  expect((await office.api.request('GET', '/account/whoami', { token: older.token })).status).toBe(401)
  expect((await office.api.request('GET', '/account/whoami', { token: old.token })).status).toBe(200)
  const { acts } = await office.call('GET', '/_hearth/admin/v1/acts?actor=server')
  expect(acts.map(({ target, outcome }: Json) => [target, outcome])).toEqual([
    [`${alice.userId} ${older.deviceId}`, 'done'],
  ])
})

test('days on which the server was away do not count, however often it starts since', async () => {
  await sql("DELETE FROM admin_act WHERE actor = 'server'")
  const back = await login(office.api, 'alice')
  const lost = await login(office.api, 'alice')
  await seen(back.deviceId, Date.now() - 129 * DAY_MS)
  await seen(lost.deviceId, Date.now() - 131 * DAY_MS)
  // Thirty days until a hundred days ago, and since then today alone.
  await ranOn([0, ...Array.from({ length: 30 }, (_, index) => 100 + index)])
  for (let start = 0; start < 2; start++) await office.server.restart()
  await waitUntil('its removal', async () => !(await devicesOf(alice)).includes(lost.deviceId))
  expect(await devicesOf(alice)).toContain(back.deviceId)
})

test('a device that comes back while others are removed stays', async () => {
  const { db } = office.server.database
  const back = await login(office.api, 'alice')
  await seen(back.deviceId, Date.now() - 200 * DAY_MS)
  await ranOn(Array.from({ length: 40 }, (_, index) => index))
  const removed: (readonly string[])[] = []
  const stale = createStaleDevices({
    config: { sessions: { ...office.server.config.sessions, remove_devices_after_days: 30 } },
    db,
    clock: { now: () => Date.now() },
    // It is seen after the round has begun, and before that is written.
    sessions: { flush: async () => void (await seen(back.deviceId, Date.now())) },
    devices: {
      removeUnused: (nid, ids, since) =>
        db.tx(async (tx) => {
          const gone = await deleteDevices(tx, nid, ids, since)
          removed.push(gone)
          return gone
        }),
    },
    audit: { record: async (_act, work) => work() },
  })
  await stale.removeAll(() => false)
  expect(removed.length).toBeGreaterThan(0)
  expect(removed.flat()).not.toContain(back.deviceId)
  expect(await devicesOf(alice)).toContain(back.deviceId)
})
