import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../support/api.ts'
import { register } from '../support/api.ts'
import { chromiumPath } from '../support/browser.ts'
import { waitUntil } from '../support/wait.ts'
import { beginAt, openSsoWorld, type SsoWorld, shows, signInAtProvider, tokenAtClient } from './world.ts'

describe.skipIf(chromiumPath() === undefined)('single sign-on in a browser', () => {
  let world: SsoWorld
  beforeAll(async () => {
    world = await openSsoWorld()
    Object.assign(world.provider.people, {
      alice: { preferred_username: 'Alice', name: 'Alice Liddell', email: 'Alice@wonder.test', email_verified: true },
      'alice-too': { preferred_username: 'alice', name: 'Another Alice' },
      bob: { preferred_username: 'bob', email: 'bob@wonder.test' },
      carol: { preferred_username: 'carol' },
      dora: { name: 'Dora Ünal' },
    })
  })
  afterAll(() => world?.close())

  const login = async (token: string): Promise<Json> =>
    (await world.api.request('POST', '/login', { body: { type: 'm.login.token', token } })).body

  /** From the client's button to the page that the provider leads back to. */
  async function signIn(name: string, at = beginAt(world)) {
    const page = await world.freshPage()
    await page.goto(at)
    await signInAtProvider(page, name)
    return page
  }

  it.each([
    ['/_matrix/client/v3', '@alice:localhost'],
    ['/_proto/client/r0', '@alice:localhost'],
  ])('makes an account the first time, and finds it again (%s)', async (prefix, userId) => {
    const page = await signIn('alice', beginAt(world, `${world.client}?state=1#top`, prefix))
    await shows(page, 'Almost there')
    expect(await page.innerText('main')).toContain(new URL(world.client).host)
    expect(await page.innerText('main')).toContain(userId)
    await page.click('.button')
    const token = await tokenAtClient(page, world)
    expect(page.url()).toBe(`${world.client}?state=1&loginToken=${token}#top`)
    const session = await login(token)
    expect(session.user_id).toBe(userId)
    expect(await world.api.call('GET', `/profile/${userId}`)).toEqual({ displayname: 'Alice Liddell' })
    const addresses = await world.server.db.query('SELECT medium, address FROM user_threepid')
    expect(addresses).toEqual([{ medium: 'email', address: 'alice@wonder.test' }])
    expect(await login(token)).toMatchObject({ errcode: 'M_FORBIDDEN' })
  })

  it('asks the provider with state, nonce and PKCE, never twice the same', () => {
    const { asked } = world.provider
    for (const query of asked) {
      expect(query.get('code_challenge_method')).toBe('S256')
      expect(query.get('redirect_uri')).toBe(`${world.origin}/_hearth/sso/callback`)
      expect(query.get('scope')).toBe('openid profile email')
    }
    for (const name of ['state', 'nonce', 'code_challenge']) {
      const values = asked.map((query) => query.get(name))
      expect(values[0]).toMatch(/^[\w-]{43}$/)
      expect(new Set(values).size).toBe(asked.length)
    }
    expect(asked.length).toBeGreaterThan(1)
  })

  it('lets a person choose a name where it is taken', async () => {
    const page = await signIn('alice-too')
    await shows(page, 'Choose a user name')
    expect(await page.inputValue('input[name=username]')).toBe('alice')
    await page.click('button')
    expect(await page.innerText('.problem')).toContain('taken')
    await page.fill('input[name=username]', 'not a name')
    await page.click('button')
    expect(await page.innerText('.problem')).toContain('letters a to z')
    await page.reload()
    await page.fill('input[name=username]', 'alice.two')
    await page.click('button')
    await shows(page, 'Welcome')
    await page.click('.button')
    expect((await login(await tokenAtClient(page, world))).user_id).toBe('@alice.two:localhost')
    const again = await signIn('alice-too')
    expect(await again.innerText('main')).toContain('@alice.two:localhost')
  })

  it('proposes nothing where the provider tells no name', async () => {
    const page = await signIn('dora')
    await shows(page, 'Choose a user name')
    expect(await page.inputValue('input[name=username]')).toBe('')
    expect(await page.innerText('main')).toContain('Welcome, Dora Ünal!')
  })

  it('keeps no address that the provider has not verified', async () => {
    await signIn('bob')
    const rows = await world.server.db.query("SELECT 1 AS one FROM user_threepid WHERE address LIKE 'bob%'")
    expect(rows).toEqual([])
  })

  it('says so when it was cancelled at the provider, and can be tried again', async () => {
    const page = await world.freshPage()
    await page.goto(beginAt(world))
    await page.click('text=[ Cancel ]')
    await shows(page, 'You have not been signed in')
    expect(await page.innerText('main')).toContain('Example Inc.')
    await page.click('.button')
    await signInAtProvider(page, 'carol')
    expect(await page.innerText('main')).toContain('@carol:localhost')
  })

  it('is over after a quarter of an hour', async () => {
    const page = await world.freshPage()
    await page.goto(beginAt(world))
    world.server.advance(15 * 60_000)
    await signInAtProvider(page, 'carol')
    await shows(page, 'This page has expired')
  })

  it('takes an answer of the provider once', async () => {
    const page = await signIn('carol')
    await shows(page, 'Almost there')
    await page.reload()
    await shows(page, 'This page has expired')
  })

  it('takes it from the browser that began only: nobody is signed in by a link', async () => {
    const attacker = await (await world.newBrowser()).newPage()
    await attacker.goto(beginAt(world))
    let callback = ''
    world.intercept = (url) => {
      if (url.startsWith('/_hearth/sso/callback')) callback = world.origin + url
      return callback !== ''
    }
    await signInAtProvider(attacker, 'carol')
    await waitUntil('the callback', () => callback !== '')
    world.intercept = undefined
    const victims = [await world.newBrowser(), await world.newBrowser()]
    // The second has a sign-in of its own under way, and so a cookie.
    await (await (victims[1] as (typeof victims)[0]).newPage()).goto(beginAt(world))
    for (const victim of victims) {
      const page = await victim.newPage()
      await page.goto(callback)
      await shows(page, 'This page has expired')
    }
    // Nor has that spoiled it for the one who began.
    await attacker.goto(callback)
    await shows(attacker, 'Almost there')
  })

  it('lets one browser sign in twice at the same time', async () => {
    const context = await world.newBrowser()
    const [one, two] = [await context.newPage(), await context.newPage()]
    await one.goto(beginAt(world, `${world.client}?tab=1`))
    await two.goto(beginAt(world, `${world.client}?tab=2`))
    await signInAtProvider(one, 'carol')
    await one.click('.button')
    expect(await tokenAtClient(one, world)).not.toBe('')
    await signInAtProvider(two, 'carol')
    await two.click('.button')
    expect(await tokenAtClient(two, world)).not.toBe('')
    expect(two.url()).toContain('tab=2')
  })

  it('sets one cookie: of this host alone, over TLS alone, out of reach of scripts', async () => {
    const page = await signIn('carol')
    const [cookie, ...others] = await page.context().cookies(world.origin)
    expect(others.filter(({ name }) => name.includes('hearth'))).toEqual([])
    const own = [cookie, ...others].find((each) => each?.name.includes('hearth'))
    expect(own).toMatchObject({ name: '__Host-hearth-sso', path: '/', httpOnly: true, secure: true, sameSite: 'Lax' })
  })

  it('refuses a deactivated account, and makes no other', async () => {
    world.provider.people.eve = { preferred_username: 'eve' }
    await signIn('eve')
    const eve = "(SELECT user_nid FROM matrix_user WHERE user_id = '@eve:localhost')"
    await world.server.db.tx(async (tx) => {
      await tx.query(`UPDATE account SET deactivated_at = 1 WHERE user_nid = ${eve}`)
      await tx.query(`DELETE FROM login_token WHERE user_nid = ${eve}`)
    })
    const page = await signIn('eve')
    await shows(page, 'This account has been deactivated')
    expect(await world.server.db.query(`SELECT 1 AS one FROM login_token WHERE user_nid = ${eve}`)).toEqual([])
  })

  it('leaves accounts alone that only have the same name', async () => {
    await register(world.api, 'frank')
    world.provider.people.frank = { preferred_username: 'frank' }
    await shows(await signIn('frank'), 'Choose a user name')
  })

  it('says so when the provider does not answer, before and after', async () => {
    const page = await world.freshPage()
    await page.goto(beginAt(world))
    world.intercept = (url) => {
      world.provider.isDown ||= url.startsWith('/_hearth/sso/callback')
      return false
    }
    await signInAtProvider(page, 'carol')
    await shows(page, 'Example Inc. does not answer')
    world.intercept = undefined
    world.provider.isDown = false
    // What was discovered is known for an hour; after it, the provider must answer before anybody is sent there.
    world.server.advance(3_600_001)
    world.provider.isDown = true
    const answer = await page.goto(beginAt(world))
    expect(answer?.status()).toBe(502)
    await shows(page, 'Example Inc. does not answer')
    world.provider.isDown = false
    // The provider knows the person still.
    await page.click('.button')
    await shows(page, 'Almost there')
  })

  it('leaves no secret in the log or in the database', async () => {
    const page = await world.freshPage()
    const seen: string[] = []
    page.on('request', (request) => seen.push(request.url()))
    await page.goto(beginAt(world))
    await signInAtProvider(page, 'carol')
    await page.click('.button')
    const secrets = [await tokenAtClient(page, world)]
    for (const url of seen.filter((each) => each.includes('/_hearth/sso/callback'))) {
      const query = new URL(url).searchParams
      secrets.push(query.get('code') ?? '', query.get('state') ?? '')
    }
    expect(secrets).toHaveLength(3)
    const cookies = await page.context().cookies(world.origin)
    secrets.push(cookies.find(({ name }) => name.includes('hearth'))?.value ?? '')
    const dump: string[] = []
    for (const table of ['login_token', 'sso_flow', 'user_external_id']) {
      const rows = await world.server.db.scan<{ row: string }>(`SELECT t::text AS row FROM ${table} t`)
      dump.push(...rows.map(({ row }) => row))
    }
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(20)
      expect(dump.join()).not.toContain(secret)
      expect(world.server.logged()).not.toContain(secret)
    }
  })
})
