import '../e2e/promise-with-resolvers.ts'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createClient, OAuth2 } from 'matrix-js-sdk'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { shows } from '../sso/world.ts'
import { openApi, PASSWORD } from '../support/api.ts'
import { chromiumPath, openBrowser, type TestBrowser } from '../support/browser.ts'
import { slowness } from '../support/slowness.ts'
import { CLIENT, type OauthWorld, openOauthWorld, REDIRECT } from './world.ts'

/** Where pictures of the pages go; nowhere without it. */
const pictures = process.env.PICTURES

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

  /** Looks at a page in all its shapes: it fits a phone, and each field has a label. */
  async function look(name: string, at = page): Promise<void> {
    const unnamed =
      "[...document.querySelectorAll('input:not([type=hidden],[hidden])')].filter((each) => each.labels.length === 0).length"
    expect(await at.evaluate(unnamed), name).toBe(0)
    for (const [shape, width, colorScheme] of [
      ['light', 900, 'light'],
      ['dark', 900, 'dark'],
      ['phone', 360, 'light'],
    ] as const) {
      await at.setViewportSize({ width, height: 800 })
      await at.emulateMedia({ colorScheme })
      expect(await at.evaluate('document.documentElement.scrollWidth <= window.innerWidth'), `${name} ${shape}`).toBe(
        true,
      )
      if (pictures === undefined) continue
      await mkdir(pictures, { recursive: true })
      await at.screenshot({ path: join(pictures, `${name}-${shape}.png`), fullPage: true })
    }
    await at.setViewportSize({ width: 900, height: 900 })
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
    await look('sign-up')
    await page.getByLabel('User name').fill('alice')
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByLabel('The password once more').fill(PASSWORD)
    await button('Create the account')
    await shows(page, 'Allow app.example.com?')
    await look('consent')
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

  it('end the session on the account page: a held sync ends within a second', async () => {
    const api = openApi(world.origin)
    const first = await api.call('GET', '/sync?timeout=0', { token: accessToken })
    const held = api
      .request('GET', `/sync?timeout=30000&since=${first.next_batch}`, { token: accessToken })
      .then((answer) => ({ ...answer, at: Date.now() }))
    await page.goto(world.metadata.account_management_uri)
    await shows(page, 'Your account')
    await look('account')
    await page.getByRole('link', { name: new RegExp(oauth.context.deviceId) }).click()
    await shows(page, 'An app')
    await look('session')
    await button(/End the session/)
    await page.getByText('The session has ended.').waitFor()
    const ended = Date.now()
    const { status, body, at } = await held
    expect([status, body.errcode]).toEqual([401, 'M_UNKNOWN_TOKEN'])
    expect((at - ended) / slowness()).toBeLessThan(1_000)
    await expect(oauth.performRefreshTokenGrant(refreshToken)).rejects.toMatchObject({ error: 'invalid_grant' })
    await api.close()
  })

  it('sign in a device that shows a code', async () => {
    const grant = await oauth.startDeviceAuthorizationGrant()
    const waiting = oauth.waitForDeviceAuthorizationGrant(grant)
    await page.goto(grant.verification_uri)
    await shows(page, 'Sign in another device')
    await look('link')
    await page.getByLabel('The code that the device shows').fill(grant.user_code)
    await button('Continue')
    await shows(page, 'Is this your device?')
    await look('link-confirm')
    await button('Yes, sign it in')
    await shows(page, 'The device is signed in')
    await look('link-done')
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
    await look('sign-in-de', other)
    await other.keyboard.type('alice')
    await other.keyboard.press('Tab')
    await other.keyboard.type('wrong')
    await other.keyboard.press('Enter')
    await other.getByRole('alert').waitFor()
    await look('sign-in-wrong-de', other)
    await other.keyboard.type(PASSWORD)
    await other.keyboard.press('Enter')
    await shows(other, 'app.example.com erlauben?')
    await look('consent-de', other)
    await other.getByRole('button', { name: 'Nicht erlauben' }).click()
    await other.waitForURL(/app\.example\.com/)
    expect(new URL(other.url()).searchParams.get('error')).toBe('access_denied')
    await other.goto(`${world.origin}/_hearth/account`)
    await look('account-de', other)
  })

  it('see each other page', async () => {
    let german: Page | undefined
    for (const [path, heading, name] of [
      ['/_hearth/account/password', 'Change the password', 'password'],
      ['/_hearth/account/keys', 'Allow a reset of your keys?', 'keys'],
      ['/_hearth/account/email', 'Add an email address', 'email'],
      ['/_hearth/account/deactivate', 'Delete your account?', 'deactivate'],
      ['/_hearth/account/data', 'Your data as a file', 'data'],
      ['/_hearth/account/reset', 'Confirm your email address', 'reset'],
      ['/_hearth/oauth/authorize', 'This sign-in cannot begin', 'refused'],
      ['/_hearth/oauth/consent/gone', 'This sign-in has ended', 'ended'],
    ] as const) {
      await page.goto(world.origin + path)
      await shows(page, heading)
      await look(name)
      if (pictures === undefined) continue
      german ??= await newPage('de-DE')
      await german.context().addCookies(await page.context().cookies())
      await german.goto(world.origin + path)
      await look(`${name}-de`, german)
    }
    await page.goto(`${world.origin}/_hearth/account`)
    await button('Sign out of this page')
    await shows(page, 'Sign in')
    await look('sign-in')
  })

  it('are never told to load or to run what the page does not allow', () => {
    expect(trouble).toEqual([])
  })
})
