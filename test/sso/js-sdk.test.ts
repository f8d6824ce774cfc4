import '../e2e/promise-with-resolvers.ts'
import { createClient } from 'matrix-js-sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath } from '../support/browser.ts'
import { openSsoWorld, type SsoWorld, shows, signInAtProvider, tokenAtClient } from './world.ts'

describe.skipIf(chromiumPath() === undefined)('matrix-js-sdk', () => {
  let world: SsoWorld
  beforeAll(async () => {
    world = await openSsoWorld()
    world.provider.people.alice = { preferred_username: 'alice' }
  })
  afterAll(() => world?.close())

  it.each(['_matrix', '_proto'])('signs in from its own button to its own session (/%s)', async (root) => {
    const fetchFn = (input: string | URL | Request, init?: RequestInit) =>
      fetch(String(input).replace(world.origin, world.server.baseUrl).replace('/_matrix/', `/${root}/`), init)
    const client = createClient({ baseUrl: world.origin, fetchFn: fetchFn as typeof fetch })
    const { flows } = await client.loginFlows()
    expect(flows.map(({ type }) => type)).toContain('m.login.sso')
    const address = client.getSsoLoginUrl(world.client, 'sso', 'example').replace('/_matrix/', `/${root}/`)
    const page = await world.freshPage()
    await page.goto(address)
    await signInAtProvider(page, 'alice')
    await shows(page, 'Almost there')
    await page.click('.button')
    const session = await client.loginWithToken(await tokenAtClient(page, world))
    expect(session.user_id).toBe('@alice:localhost')
    const own = createClient({
      baseUrl: world.origin,
      fetchFn: fetchFn as typeof fetch,
      accessToken: session.access_token,
      userId: session.user_id,
    })
    expect(await own.whoami()).toMatchObject({ user_id: '@alice:localhost', device_id: session.device_id })
  })
})
