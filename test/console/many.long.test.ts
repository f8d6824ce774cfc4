import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Json, PASSWORD } from '../support/api.ts'
import { chromiumPath, openBrowser, type TestBrowser } from '../support/browser.ts'
import { fastestMs, limitNow } from '../support/slowness.ts'
import { fillTown, MANY_ROOMS, MANY_USERS } from './crowd.ts'
import { CONSOLE, type ConsoleWorld, openConsoleWorld } from './world.ts'

const MOST_MS = 500

let world: ConsoleWorld

beforeAll(async () => {
  world = await openConsoleWorld({ registration: { enabled: true } })
  await fillTown(world.server.database.connection)
}, 240_000)
afterAll(() => world.close())

const ROOM = '/_hearth/admin/v1/rooms/!room1:localhost'
const timings: [string, number][] = []

interface List {
  readonly path: string
  readonly key: string
  readonly rows: number
  readonly total?: number
}

const ROOM_ORDERS = [
  'name',
  'canonical_alias',
  'joined_members',
  'joined_local_members',
  'version',
  'creator',
  'encryption',
  'federatable',
  'public',
  'join_rules',
  'guest_access',
  'history_visibility',
  'state_events',
]

/** Each list of the console, in its first page, in one far behind, and with a search: what it must hold, and how much there is. */
const LISTS: readonly List[] = [
  {
    path: '/_synapse/admin/v2/users?limit=50&order_by=name&dir=f&locked=true',
    key: 'users',
    rows: 50,
    total: MANY_USERS + 1,
  },
  {
    path: '/_synapse/admin/v2/users?limit=50&order_by=name&dir=f&from=90000&locked=true',
    key: 'users',
    rows: 50,
    total: MANY_USERS + 1,
  },
  {
    path: '/_synapse/admin/v2/users?limit=50&order_by=last_seen_ts&dir=b&locked=true',
    key: 'users',
    rows: 50,
    total: MANY_USERS + 1,
  },
  {
    path: '/_synapse/admin/v2/users?limit=50&order_by=creation_ts&dir=b&locked=true',
    key: 'users',
    rows: 50,
    total: MANY_USERS + 1,
  },
  { path: '/_synapse/admin/v2/users?limit=50&name=user99&order_by=name&dir=f&locked=true', key: 'users', rows: 50 },
  { path: '/_synapse/admin/v2/users?limit=50&name=erson+99&order_by=name&dir=f&locked=true', key: 'users', rows: 50 },
  { path: '/_synapse/admin/v1/rooms/!room1:localhost', key: 'room_id', rows: 0 },
  { path: '/_hearth/admin/v1/rooms?limit=50&order=members', key: 'rooms', rows: 50, total: MANY_ROOMS },
  { path: '/_hearth/admin/v1/rooms?limit=50&order=events&from=15000', key: 'rooms', rows: 50, total: MANY_ROOMS },
  { path: '/_hearth/admin/v1/rooms?limit=50&order=newest', key: 'rooms', rows: 50, total: MANY_ROOMS },
  { path: '/_hearth/admin/v1/rooms?limit=50&search=room+number+777', key: 'rooms', rows: 11 },
  ...ROOM_ORDERS.map((order) => ({
    path: `/_synapse/admin/v1/rooms?limit=50&order_by=${order}`,
    key: 'rooms',
    rows: 50,
  })),
  { path: '/_synapse/admin/v1/rooms?limit=50&search_term=number+777', key: 'rooms', rows: 11 },
  { path: `${ROOM}/members?limit=100`, key: 'members', rows: 100, total: MANY_USERS },
  { path: `${ROOM}/members?limit=100&from=90000`, key: 'members', rows: 100, total: MANY_USERS },
  { path: '/_hearth/admin/v1/identity/bindings?limit=50', key: 'bindings', rows: 50, total: MANY_USERS },
  { path: '/_hearth/admin/v1/identity/bindings?limit=50&search=user99999', key: 'bindings', rows: 1, total: 1 },
  { path: '/_hearth/admin/v1/acts?limit=50', key: 'acts', rows: 50 },
  { path: '/_hearth/admin/v1/acts?limit=50&target=@user77:localhost', key: 'acts', rows: 1 },
  { path: '/_synapse/admin/v1/event_reports?limit=25&dir=b', key: 'event_reports', rows: 25, total: MANY_USERS },
  {
    path: '/_synapse/admin/v1/statistics/users/media?limit=50&order_by=media_length&dir=b',
    key: 'users',
    rows: 50,
    total: MANY_USERS,
  },
  {
    path: '/_synapse/admin/v1/federation/destinations?limit=50&order_by=failure_ts&dir=b',
    key: 'destinations',
    rows: 50,
  },
  { path: '/_hearth/admin/v1/overview', key: 'size', rows: 0 },
]

describe(`with ${MANY_USERS} users and ${MANY_ROOMS} rooms, a page is there within ${MOST_MS} ms`, () => {
  it.each(LISTS)('$path', async ({ path, key, rows, total }) => {
    let body: Json
    const mostMs = limitNow(MOST_MS)
    const fastest = await fastestMs(mostMs, async () => {
      const begun = performance.now()
      body = await world.call('GET', path)
      return performance.now() - begun
    })
    timings.push([path, Math.round(fastest)])
    if (rows > 0) expect(body[key]).toHaveLength(rows)
    else expect(body[key]).toBeDefined()
    if (total !== undefined) expect(body.total).toBe(total)
    expect(fastest).toBeLessThan(mostMs)
  })

  it('all of them were measured', () => {
    console.table(timings)
    expect(timings).toHaveLength(LISTS.length)
  })
})

describe.skipIf(chromiumPath() === undefined)('from a click until the page is shown', () => {
  let browser: TestBrowser
  let page: Page

  beforeAll(async () => {
    browser = await openBrowser()
    const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 900 } })
    page = await context.newPage()
    await page.goto(world.origin + CONSOLE)
    await page.getByLabel('User name or email address').fill('boss')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  })
  afterAll(() => browser.close())

  it.each(['Users', 'Rooms', 'Reports', 'Media', 'Federation', 'Identity bindings', 'Record of acts'])(
    'of %s, no more than half a second goes by',
    async (name) => {
      const mostMs = limitNow(MOST_MS)
      const fastest = await fastestMs(mostMs, async () => {
        await page.locator('nav#menu').getByRole('link', { name: 'Configuration', exact: true }).click()
        await page.getByRole('heading', { level: 1, name: 'Configuration' }).waitFor()
        const begun = performance.now()
        await page.locator('nav#menu').getByRole('link', { name, exact: true }).click()
        await page.getByRole('heading', { level: 1, name }).waitFor()
        await page.locator('.shown[aria-busy="false"] :is(table tbody tr, .report)').first().waitFor()
        return performance.now() - begun
      })
      console.log(`${name}: ${Math.round(fastest)} ms`)
      expect(fastest).toBeLessThan(mostMs)
    },
  )
})
