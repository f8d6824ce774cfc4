import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSsoWorld, type SsoWorld, shows, signInAtProvider } from '../sso/world.ts'
import { chromiumPath } from '../support/browser.ts'
import { CLIENT, REDIRECT, requestOf } from './world.ts'

describe.skipIf(chromiumPath() === undefined)('another service behind these pages', () => {
  let world: SsoWorld
  beforeAll(async () => {
    world = await openSsoWorld()
    world.provider.people.alice = { preferred_username: 'alice' }
    world.provider.people.zoe = {}
  })
  afterAll(() => world?.close())

  async function openApp(page: Page) {
    const context = page.context()
    await context.route('https://app.example.com/**', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<title>app</title>' }),
    )
    const metadata = await world.api.call('GET', '/_matrix/client/v1/auth_metadata')
    const { client_id } = await world.api.call('POST', '/_hearth/oauth/register', { body: CLIENT })
    const request = requestOf(client_id)
    await page.goto(`${metadata.authorization_endpoint}?${new URLSearchParams(request.parameters)}`)
    return { page, request, context }
  }

  it('signs a person in for an app', async () => {
    const { page, request, context } = await openApp(await world.freshPage())
    await shows(page, 'Sign in')
    await page.click('text=Continue with Example Inc.')
    await signInAtProvider(page, 'alice')
    await shows(page, 'Allow app.example.com?')
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    await page.waitForURL(/app\.example\.com/)
    const code = new URL(page.url()).searchParams.get('code') ?? ''
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: REDIRECT,
      client_id: request.parameters.client_id ?? '',
      code_verifier: request.verifier,
    })
    const answer = await fetch(`${world.server.baseUrl}/_hearth/oauth/token`, { method: 'POST', body })
    const { access_token: token } = (await answer.json()) as { access_token: string }
    expect((await world.api.call('GET', '/account/whoami', { token })).user_id).toBe('@alice:localhost')
    const cookies = await context.cookies(world.origin)
    const own = cookies.filter(({ name }) => name.startsWith('__Host-hearth-'))
    expect(own.map(({ name }) => name)).toContain('__Host-hearth-account')
    expect(own.every(({ httpOnly, secure, sameSite }) => httpOnly && secure && sameSite === 'Lax')).toBe(true)
  })

  it('lets a new person choose a name first', async () => {
    const { page } = await openApp(await world.freshPage())
    await page.click('text=Continue with Example Inc.')
    await signInAtProvider(page, 'zoe')
    await shows(page, 'Choose a user name')
    await page.getByLabel('User name').fill('zoe-here')
    await page.getByRole('button').click()
    await shows(page, 'Welcome')
    await page.click('.button')
    await shows(page, 'Allow app.example.com?')
    expect(await page.innerText('main')).toContain('@zoe-here:localhost')
  })

  it('proves that somebody is there only if it has asked them again', async () => {
    const { page } = await openApp(await world.freshPage())
    await page.click('text=Continue with Example Inc.')
    await signInAtProvider(page, 'alice')
    await shows(page, 'Allow app.example.com?')
    // The provider said nothing of when that was.
    await page.goto(`${world.origin}/_hearth/account/deactivate`)
    await shows(page, 'Confirm that it is you')
    world.provider.asked.length = 0
    world.provider.tampering = (claims, sign) => sign({ ...claims, auth_time: Math.floor(Date.now() / 1000) - 3_600 })
    await page.click('text=Continue with Example Inc.')
    await signInAtProvider(page, 'alice')
    await shows(page, 'You were not asked to sign in again')
    expect(world.provider.asked.map((query) => query.get('max_age'))).toEqual(['0'])
    world.provider.tampering = (claims, sign) => sign({ ...claims, auth_time: undefined })
    await page.goto(`${world.origin}/_hearth/account/deactivate`)
    await page.click('text=Continue with Example Inc.')
    await signInAtProvider(page, 'alice')
    await shows(page, 'You were not asked to sign in again')
    world.provider.tampering = undefined
    await page.goto(`${world.origin}/_hearth/account/deactivate`)
    await shows(page, 'Confirm that it is you')
    await page.click('text=Continue with Example Inc.')
    await signInAtProvider(page, 'alice')
    await shows(page, 'Delete your account?')
  })

  it('cannot be used to sign somebody in by a link', async () => {
    const { page } = await openApp(await world.freshPage())
    const own = await world.newBrowser()
    const { page: mallory } = await openApp(await own.newPage())
    await mallory.click('text=Continue with Example Inc.')
    let link = ''
    world.intercept = (url) => {
      if (!url.startsWith('/_hearth/account/signed-in')) return false
      link = url
      return true
    }
    await signInAtProvider(mallory, 'alice')
    await mallory.waitForURL(/signed-in/)
    world.intercept = undefined
    await page.goto(world.origin + link)
    await shows(page, 'Please try that again')
    await page.goto(`${world.origin}/_hearth/account`)
    await shows(page, 'Sign in')
    await own.close()
  })
})
