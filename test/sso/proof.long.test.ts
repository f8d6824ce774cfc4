import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Account, Json } from '../support/api.ts'
import { chromiumPath } from '../support/browser.ts'
import { beginAt, openSsoWorld, type SsoWorld, shows, signInAtProvider, tokenAtClient } from './world.ts'

describe.skipIf(chromiumPath() === undefined)('proving who one is by single sign-on', () => {
  let world: SsoWorld
  let alice: Account
  let page: Page

  beforeAll(async () => {
    world = await openSsoWorld()
    Object.assign(world.provider.people, { alice: { preferred_username: 'alice' }, bob: { preferred_username: 'bob' } })
    page = await (await world.newBrowser()).newPage()
    alice = await logIn()
    await signUp('bob')
  })
  afterAll(() => world?.close())

  async function signUp(name: string): Promise<void> {
    const other = await world.freshPage()
    await other.goto(beginAt(world))
    await signInAtProvider(other, name)
    await shows(other, 'Almost there')
  }

  /** Logs in a device of Alice's, who is known to the provider from the first time on. */
  async function logIn(): Promise<Account> {
    await page.goto(beginAt(world))
    if (page.url().includes('/interaction/')) await signInAtProvider(page, 'alice')
    await page.click('.button')
    const body = { type: 'm.login.token', token: await tokenAtClient(page, world) }
    const answer = await world.api.call('POST', '/login', { body })
    return { userId: answer.user_id, token: answer.access_token, deviceId: answer.device_id }
  }

  const remove = (deviceId: string, auth?: Json, root = '/_matrix/client/v3') =>
    world.api.request('DELETE', `${root}/devices/${deviceId}`, {
      token: alice.token,
      body: auth === undefined ? {} : { auth },
    })
  const fallback = (session: string, root = '/_matrix/client/v3') =>
    `${world.origin}${root}/auth/m.login.sso/fallback/web?session=${session}`

  it.each(['/_matrix/client/v3', '/_proto/client/r0'])(
    'lets a person without a password remove a device (%s)',
    async (root) => {
      const { deviceId, token } = await logIn()
      const first = await remove(deviceId, undefined, root)
      expect(first).toMatchObject({ status: 401, body: { flows: [{ stages: ['m.login.sso'] }] } })
      const { session } = first.body
      const inBand = await remove(deviceId, { type: 'm.login.sso', session }, root)
      expect(inBand).toMatchObject({ status: 401, body: { errcode: 'M_UNAUTHORIZED' } })
      expect((await remove(deviceId, { session }, root)).body.completed).toEqual([])

      await page.goto(fallback(session, root))
      await shows(page, 'Is it you?')
      expect(await page.innerText('main')).toContain('remove devices from your account')
      await page.click('.choices a')
      // The provider knows Alice, and yet she has to sign in again.
      await signInAtProvider(page, 'alice')
      await shows(page, 'Thank you')
      expect((await remove(deviceId, { session }, root)).status).toBe(200)
      expect((await world.api.request('GET', '/account/whoami', { token })).status).toBe(401)
      // The session is spent.
      expect((await remove(deviceId, { session }, root)).status).toBe(401)
      await page.goto(fallback(session, root))
      expect(await page.innerText('h1')).not.toBe('Is it you?')
    },
  )

  it('tells the window that opened the page', async () => {
    const { deviceId } = await logIn()
    const { session } = (await remove(deviceId)).body
    await page.goto(world.client)
    await page.evaluate('window.told = []; window.addEventListener("message", (event) => window.told.push(event.data))')
    const [popup] = await Promise.all([
      page.waitForEvent('popup'),
      page.evaluate(`void window.open(${JSON.stringify(fallback(session))})`),
    ])
    await popup.click('.choices a')
    await signInAtProvider(popup, 'alice')
    await shows(popup, 'Thank you')
    await page.waitForFunction('window.told.includes("authDone")')
  })

  it('is not done by somebody else', async () => {
    const { deviceId } = await logIn()
    const { session } = (await remove(deviceId)).body
    const other = await world.freshPage()
    for (const name of ['bob', 'stranger']) {
      await other.goto(fallback(session))
      await other.click('.choices a')
      await signInAtProvider(other, name)
      await shows(other, 'That was somebody else')
    }
    expect((await remove(deviceId, { session })).status).toBe(401)
    expect(await world.server.db.query("SELECT 1 AS one FROM user_external_id WHERE subject = 'stranger'")).toEqual([])
    // The right one can still do it.
    await page.goto(fallback(session))
    await page.click('.choices a')
    await signInAtProvider(page, 'alice')
    await shows(page, 'Thank you')
    expect((await remove(deviceId, { session })).status).toBe(200)
  })

  it('is not done by an old sign-in', async () => {
    const { deviceId } = await logIn()
    const { session } = (await remove(deviceId)).body
    await page.goto(fallback(session))
    await page.click('.choices a')
    world.provider.tampering = (claims, sign) => sign({ ...claims, auth_time: Math.floor(Date.now() / 1000) - 3_600 })
    await signInAtProvider(page, 'alice')
    await shows(page, 'You were not asked to sign in again')
    world.provider.tampering = undefined
    expect((await remove(deviceId, { session })).status).toBe(401)
  })

  it('gives no login, as a login proves nothing', async () => {
    const { deviceId } = await logIn()
    const { session } = (await remove(deviceId)).body
    const tokens = () => world.server.db.query('SELECT 1 AS one FROM login_token')
    const before = (await tokens()).length
    await page.goto(fallback(session))
    await page.click('.choices a')
    await signInAtProvider(page, 'alice')
    await shows(page, 'Thank you')
    expect(await tokens()).toHaveLength(before)
    const { session: another } = (await remove(deviceId)).body
    await logIn()
    expect((await remove(deviceId, { session: another })).status).toBe(401)
  })
})
