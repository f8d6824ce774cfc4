import '../e2e/promise-with-resolvers.ts'
import { createClient, OAuth2 } from 'matrix-js-sdk'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { shows } from '../sso/world.ts'
import { openApi, PASSWORD } from '../support/api.ts'
import { chromiumPath, openBrowser, type TestBrowser } from '../support/browser.ts'
import { slowness } from '../support/slowness.ts'
import { waitUntil } from '../support/wait.ts'
import { CLIENT, type OauthWorld, openOauthWorld, REDIRECT } from './world.ts'

/** Both texts of sliding sync, and how each says that it wants no state. */
const SLIDING = [
  ['merged', '/_matrix/client/v4/sync', {}],
  ['unstable', '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync', []],
] as const

describe.skipIf(chromiumPath() === undefined)('matrix-js-sdk and a person with a browser', () => {
  let world: OauthWorld
  let browser: TestBrowser
  let page: Page
  let oauth: OAuth2
  let refreshToken: string
  let accessToken: string
  const trouble: string[] = []

  beforeAll(async () => {
    world = await openOauthWorld({ registration: { enabled: true } }, 'whole')
    browser = await openBrowser()
    page = await newPage()
  })
  afterAll(async () => {
    await browser.close()
    await world.close()
  })

  async function newPage(locale = 'en-GB'): Promise<Page> {
    const context = await browser.newContext({ locale, viewport: { width: 900, height: 900 } })
    await context.route('https://app.example.com/**', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<title>app</title><h1>The app</h1>' }),
    )
    const opened = await context.newPage()
    opened.on('console', (message) => {
      if (!/status of 40\d|favicon/.test(message.text())) trouble.push(message.text())
    })
    opened.on('pageerror', (error) => trouble.push(String(error)))
    return opened
  }

  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true }).click()

  it('register a client, and sign up', async () => {
    const client = createClient({ baseUrl: world.origin })
    const metadata = await client.getAuthMetadata()
    const clientId = await OAuth2.registerClient(metadata, {
      client_name: CLIENT.client_name,
      client_uri: CLIENT.client_uri,
      redirect_uris: [REDIRECT],
      application_type: 'web',
      logo_uri: 'https://app.example.com/logo.png',
    } as never)
    oauth = new OAuth2(metadata, { clientId })
    const url = await oauth.generateAuthorizationCodeGrantUrl('a-state', REDIRECT, 'fragment', 'create')
    await page.goto(url)
    await shows(page, 'Create an account')
    await page.getByLabel('User name').fill('alice')
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByLabel('The password once more').fill(PASSWORD)
    await button('Create the account')
    await shows(page, 'Allow app.example.com?')
    await button('Allow')
    await page.waitForURL(/app\.example\.com/)
    const answer = new URLSearchParams(new URL(page.url()).hash.slice(1))
    expect(answer.get('state')).toBe('a-state')
    const tokens = await oauth.completeAuthorizationCodeGrant(answer.get('code') ?? '', REDIRECT)
    accessToken = tokens.access_token
    refreshToken = tokens.refresh_token ?? ''
    const own = createClient({ baseUrl: world.origin, accessToken, userId: '@alice:localhost' })
    expect(await own.whoami()).toMatchObject({ user_id: '@alice:localhost', device_id: oauth.context.deviceId })
  })

  it('refresh', async () => {
    const tokens = await oauth.performRefreshTokenGrant(refreshToken)
    expect(tokens.access_token).not.toBe(accessToken)
    accessToken = tokens.access_token
    refreshToken = tokens.refresh_token ?? ''
    expect((await world.api.request('GET', '/account/whoami', { token: accessToken })).status).toBe(200)
  })

  it('end the session on the account page: held syncs of every kind end within a second', async () => {
    const api = openApi(world.origin)
    const token = accessToken
    const at = async (asked: ReturnType<typeof api.request>) => ({ ...(await asked), at: Date.now() })
    const first = await api.call('GET', '/sync?timeout=0', { token })
    const held = [at(api.request('GET', `/sync?timeout=30000&since=${first.next_batch}`, { token }))]
    for (const [conn_id, path, required_state] of SLIDING) {
      const body = { conn_id, lists: { all: { ranges: [[0, 9]], timeline_limit: 1, required_state } } }
      const { pos } = await api.call('POST', path, { token, body })
      // One text of it has these in the query, the other in the body.
      const sliding = { ...body, pos, timeout: 30_000 }
      held.push(at(api.request('POST', `${path}?pos=${pos}&timeout=30000`, { token, body: sliding })))
    }
    await waitUntil('all of them to be held', async () =>
      (await world.metrics()).includes(`\nhearth_waiting_syncs ${held.length}\n`),
    )
    await page.goto(world.metadata.account_management_uri)
    await shows(page, 'Your account')
    await page.getByRole('link', { name: new RegExp(oauth.context.deviceId) }).click()
    await shows(page, 'An app')
    await button(/End the session/)
    await page.getByText('The session has ended.').waitFor()
    const ended = Date.now()
    for (const answer of await Promise.all(held)) {
      expect([answer.status, answer.body.errcode]).toEqual([401, 'M_UNKNOWN_TOKEN'])
      expect((answer.at - ended) / slowness()).toBeLessThan(1_000)
    }
    await expect(oauth.performRefreshTokenGrant(refreshToken)).rejects.toMatchObject({ error: 'invalid_grant' })
    await api.close()
  })

  it('sign in a device that shows a code', async () => {
    const grant = await oauth.startDeviceAuthorizationGrant()
    const waiting = oauth.waitForDeviceAuthorizationGrant(grant)
    await page.goto(grant.verification_uri)
    await shows(page, 'Sign in another device')
    await page.getByLabel('The code that the device shows').fill(grant.user_code)
    await button('Continue')
    await shows(page, 'Is this your device?')
    await button('Yes, sign it in')
    await shows(page, 'The device is signed in')
    const tokens = await waiting
    if (!('access_token' in tokens)) throw new Error(JSON.stringify(tokens))
    expect((await world.api.request('GET', '/account/whoami', { token: tokens.access_token })).status).toBe(200)
    await oauth.revokeToken(tokens.access_token, 'access_token')
    expect((await world.api.request('GET', '/account/whoami', { token: tokens.access_token })).status).toBe(401)
  })

  it('sign in again, with a wrong password first, by the keyboard alone', async () => {
    const other = await newPage('de-AT')
    const url = await oauth.generateAuthorizationCodeGrantUrl('b-state', REDIRECT, 'query')
    await other.goto(url)
    await shows(other, 'Anmelden')
    await other.keyboard.type('alice')
    await other.keyboard.press('Tab')
    await other.keyboard.type('wrong')
    await other.keyboard.press('Enter')
    await other.getByRole('alert').waitFor()
    await other.keyboard.type(PASSWORD)
    await other.keyboard.press('Enter')
    await shows(other, 'app.example.com erlauben?')
    await other.getByRole('button', { name: 'Nicht erlauben' }).click()
    await other.waitForURL(/app\.example\.com/)
    expect(new URL(other.url()).searchParams.get('error')).toBe('access_denied')
  })

  it('are never told to load or to run what the page does not allow', () => {
    expect(trouble).toEqual([])
  })
})
