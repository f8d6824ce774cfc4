import { afterAll, beforeAll, expect, test } from 'vitest'
import { findStaleDevices } from '../../../src/store/accounts/devices.ts'
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

test('after the server was away for long, no device counts as unused for that time', async () => {
  const now = Date.now()
  const stale = () => findStaleDevices(office.server.database.db, { now, unusedMs: 30 * DAY_MS }, 10)
  await sql('UPDATE device SET last_seen_at = $1, created_at = $1', [now - 100 * DAY_MS])
  expect(await stale()).toEqual([])
  await seen(alice.deviceId, now - 131 * DAY_MS)
  expect((await stale()).map(({ device_ids }) => device_ids)).toEqual([[alice.deviceId]])
})
