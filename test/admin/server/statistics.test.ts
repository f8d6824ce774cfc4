import { afterAll, beforeAll, expect, test } from 'vitest'
import { createStatistics } from '../../../src/domain/admin/statistics.ts'
import { waitUntil } from '../../support/wait.ts'
import { type Office, openOffice } from '../office.ts'

const DAY_MS = 24 * 3_600_000
let office: Office
beforeAll(async () => {
  office = await openOffice()
})
afterAll(() => office.close())

test('people count as active for thirty days after they were here; guests and who has left do not', async () => {
  const { api, server } = office
  const count = async () => (await office.call('GET', '/_hearth/admin/v1/statistics')).monthly_active_users
  // Whoever asks is here.
  const before = await count()
  const [once, gone] = [await office.person('once'), await office.person('gone')]
  const guest = (await api.request('POST', '/register?kind=guest', { body: {} })).body.access_token
  for (const token of [once.token, once.token, gone.token, guest])
    await api.request('GET', '/account/whoami', { token })
  expect(await count()).toBe(before + 2)
  await office.call('POST', `/v1/deactivate/${encodeURIComponent(gone.userId)}`, {})
  expect(await count()).toBe(before + 1)

  const { db } = server.database
  const at = (days: number) =>
    createStatistics({ db, clock: { now: () => Date.now() + days * DAY_MS }, sessions: { flush: async () => {} } })
  expect(await at(29).monthlyActiveUsers()).toBe(before + 1)
  const later = at(31)
  expect(later.latestMonthlyActiveUsers()).toBeNaN()
  expect(await later.monthlyActiveUsers()).toBe(0)
  expect(later.latestMonthlyActiveUsers()).toBe(0)
})

test('on a small server the number that is shown follows within seconds, with those who were just seen', async () => {
  const { db } = office.server.database
  let [ahead, flushed] = [0, 0]
  const flush = async () => void flushed++
  const shown = createStatistics({ db, clock: { now: () => Date.now() + ahead }, sessions: { flush } })
  expect(shown.latestMonthlyActiveUsers()).toBeNaN()
  const first = await waitUntil('a number', async () => {
    const latest = shown.latestMonthlyActiveUsers()
    return !Number.isNaN(latest) && { latest }
  })
  const fresh = await office.person('fresh')
  await db.tx((tx) =>
    tx.query(
      'UPDATE account SET last_active_at = $2 FROM matrix_user u WHERE u.user_nid = account.user_nid AND user_id = $1',
      [fresh.userId, Date.now()],
    ),
  )
  ahead = 30_000
  await waitUntil('the next number', async () => shown.latestMonthlyActiveUsers() === first.latest + 1)
  expect(flushed).toBeGreaterThan(1)
})
