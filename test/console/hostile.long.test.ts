import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRoom, join, PASSWORD, sendText } from '../support/api.ts'
import { chromiumPath, openBrowser, type TestBrowser } from '../support/browser.ts'
import { waitUntil } from '../support/wait.ts'
import { CONSOLE, type ConsoleWorld, openConsoleWorld } from './world.ts'

const SCRIPT = '"><img src=x onerror="window.harmed=1"><script>window.harmed=2</script>'
const BACKWARDS = '\u202eمدير النظام الأعلى\u202c'
const LONG = 'a'.repeat(250)
const NAMES = [SCRIPT, BACKWARDS, LONG, '{user} {count} $& {{x}}']

const enc = encodeURIComponent

/** What users choose, and administrators see: names, reasons, contents, programs. */
describe.skipIf(chromiumPath() === undefined)('texts that users chose to do harm', () => {
  let world: ConsoleWorld
  let browser: TestBrowser
  let page: Page
  let places: string[]
  const trouble: string[] = []

  beforeAll(async () => {
    world = await openConsoleWorld({ registration: { enabled: true }, rate_limits: { enabled: false } })
    places = [
      '',
      'users',
      'rooms',
      'reports',
      'wave',
      'lists',
      'media',
      'federation',
      'tokens',
      'bindings',
      'configuration',
      'acts',
    ]
    for (const [index, name] of NAMES.entries()) places.push(...(await leaveTraces(`person${index}`, name)))
    // A time that no calendar has.
    await world.server.database.db.tx((tx) =>
      tx.query("UPDATE event SET origin_server_ts = 9007199254740991 WHERE type = 'm.room.message'"),
    )
    await world.call('POST', '/_synapse/admin/v1/registration_tokens/new', {
      token: 'forever',
      expiry_time: Number.MAX_SAFE_INTEGER,
    })
    browser = await openBrowser()
    const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 360, height: 800 } })
    page = await context.newPage()
    page.on('console', (message) => trouble.push(message.text()))
    page.on('pageerror', (error) => trouble.push(String(error)))
    page.on('dialog', (dialog) => {
      trouble.push(dialog.message())
      void dialog.dismiss()
    })
    await page.goto(world.origin + CONSOLE)
    await page.getByLabel('User name or email address').fill('boss')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  })
  afterAll(async () => {
    await browser.close()
    await world.close()
  })

  /** A user who has this text wherever a text can be, and where it is seen. */
  async function leaveTraces(user: string, text: string): Promise<string[]> {
    const { api } = world
    const person = await world.person(user)
    const { userId } = person
    const login = await fetch(`${world.origin}/_matrix/client/v3/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': encodeURI(text).slice(0, 400) },
      body: JSON.stringify({
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user },
        password: PASSWORD,
        initial_device_display_name: text.slice(0, 100),
      }),
    })
    const { access_token: token } = (await login.json()) as { access_token: string }
    const put = (path: string, body: object) => api.call('PUT', path, { token, body })
    await put(`/profile/${enc(userId)}/displayname`, { displayname: text.slice(0, 250) })
    const room = await createRoom(api, token, { name: text, topic: text, preset: 'public_chat' })
    await put(`/rooms/${enc(room)}/state/${enc(text.slice(0, 100))}/${enc(text.slice(0, 100))}`, { text, [text]: text })
    await join(api, world.boss.token, room)
    const spam = await sendText(api, token, room, 'm1', text)
    await api.call('POST', `/rooms/${enc(room)}/report/${enc(spam)}`, {
      token: world.boss.token,
      body: { reason: text },
    })
    await fetch(`${world.origin}/_matrix/media/v3/upload?filename=${enc(text.slice(0, 200))}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'text/html', 'user-agent': encodeURI(text) },
      body: text,
    })
    const ofUser = ['', '?tab=devices', '?tab=rooms', '?tab=media'].map((tab) => `users/${enc(userId)}${tab}`)
    const ofRoom = ['', '?tab=members', '?tab=state', '?tab=graph'].map((tab) => `rooms/${enc(room)}${tab}`)
    return [...ofUser, ...ofRoom]
  }

  it('are shown as they are on every page, and fit on a phone', async () => {
    for (const place of places) {
      await page.goto(`${world.origin}${CONSOLE}#/${place}`)
      await page.locator('main h1').waitFor()
      await waitUntil(place, async () => (await page.locator('[aria-busy="true"], .wait').count()) === 0)
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), place).toBe(true)
      expect(await page.evaluate('window.harmed'), place).toBeUndefined()
    }
    expect(trouble).toEqual([])
  })

  it('as texts, such as a name of a room', async () => {
    await page.goto(`${world.origin}${CONSOLE}#/rooms`)
    await page.getByText(SCRIPT, { exact: true }).first().waitFor()
    await page.goto(`${world.origin}${CONSOLE}#/reports`)
    await page.getByText(SCRIPT, { exact: true }).first().waitFor()
  })

  it('do nothing in the questions that are asked before acts either', async () => {
    await page.goto(`${world.origin}${CONSOLE}#/rooms`)
    await page.getByText(SCRIPT, { exact: true }).first().click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('heading', { name: SCRIPT }).waitFor()
    expect(await page.evaluate('window.harmed')).toBeUndefined()
    expect(trouble).toEqual([])
  })

  it('and where an answer is nonsense, its page alone says so', async () => {
    const nonsense = { contentType: 'application/json', body: '{"backups":{"length":3},"every_hours":{}}' }
    await page.route('**/_hearth/admin/v1/backups', (route) => route.fulfill(nonsense))
    await page.goto(`${world.origin}${CONSOLE}#/backups`)
    await page.getByRole('heading', { level: 1, name: 'Something went wrong in this page.' }).waitFor()
    await page.unroute('**/_hearth/admin/v1/backups')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { level: 1, name: 'Backups' }).waitFor()
    expect(trouble).toEqual([])
  })
})
