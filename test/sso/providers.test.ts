import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Json, login, register } from '../support/api.ts'
import { chromiumPath } from '../support/browser.ts'
import { beginAt, openSsoWorld, type SsoWorld, shows, signInAtProvider, tokenAtClient } from './world.ts'

const OTHER = { id: 'other', name: 'Other & Sons', issuer: 'https://other.test', client_id: 'x', brand: 'other' }

describe.skipIf(chromiumPath() === undefined)('several providers', () => {
  let world: SsoWorld
  beforeAll(async () => {
    world = await openSsoWorld({
      provider: {
        localpart: '{{email | localpart}}',
        display_name: '{{given}}{{^given}}somebody{{/given}}',
        icon: 'mxc://localhost/logo',
      },
      others: [OTHER],
    })
    world.provider.people.zoe = { email: 'Zoe.Q@wonder.test', email_verified: false }
  })
  afterAll(() => world?.close())

  // Clients that know OAuth prefer it.
  const AWARE = { oauth_aware_preferred: true, 'org.matrix.msc3824.delegated_oidc_compatibility': true }

  it('are named among the login flows', async () => {
    for (const root of ['/_matrix/client/v3', '/_proto/client/r0']) {
      const { flows } = await world.api.call('GET', `${root}/login`)
      expect(flows).toContainEqual({
        type: 'm.login.sso',
        identity_providers: [
          { id: 'example', name: 'Example Inc.', icon: 'mxc://localhost/logo' },
          { id: 'other', name: 'Other & Sons', brand: 'other' },
        ],
        ...(root.startsWith('/_matrix') && AWARE),
      })
      expect(flows.map(({ type }: Json) => type)).toContain('m.login.token')
    }
  })

  it('are shown to choose from, in the dialect that was asked', async () => {
    const page = await world.freshPage()
    await page.goto(`${beginAt(world, world.client, '/_proto/client/r0')}&action=register`)
    await shows(page, 'Sign in')
    expect(await page.locator('.choices a').allInnerTexts()).toEqual([
      expect.stringContaining('Continue with Example Inc.'),
      expect.stringContaining('Continue with Other & Sons'),
    ])
    const address = new URL((await page.getAttribute('.choices a', 'href')) ?? '')
    expect(address.pathname).toBe('/_proto/client/v3/login/sso/redirect/example')
    expect(Object.fromEntries(address.searchParams)).toEqual({ redirectUrl: world.client, action: 'register' })
    await page.click('.choices a')
    await signInAtProvider(page, 'zoe')
    await shows(page, 'Almost there')
    expect(await page.innerText('main')).toContain('@zoe.q:localhost')
    expect((await world.api.call('GET', '/profile/@zoe.q:localhost')).displayname).toBe('somebody')
  })

  it('may be out of reach one by one', async () => {
    const page = await world.freshPage()
    await page.goto(beginAt(world))
    await page.click('text=Other & Sons')
    await shows(page, 'Other & Sons does not answer')
  })
})

describe.skipIf(chromiumPath() === undefined)('a provider whose names are trusted and that makes no accounts', () => {
  let world: SsoWorld
  beforeAll(async () => {
    world = await openSsoWorld({ provider: { allow_existing_users: true, allow_registration: false }, isPlain: true })
    Object.assign(world.provider.people, {
      alice: { preferred_username: 'Alice' },
      stranger: { preferred_username: 'stranger' },
      gone: { preferred_username: 'gone' },
    })
  })
  afterAll(() => world?.close())

  async function signIn(name: string) {
    const page = await world.freshPage()
    await page.goto(beginAt(world))
    await signInAtProvider(page, name)
    return page
  }

  it('leads to the account that is there, which keeps its password', async () => {
    const alice = await register(world.api, 'alice')
    const page = await signIn('alice')
    await shows(page, 'Almost there')
    await page.click('.button')
    const body = { type: 'm.login.token', token: await tokenAtClient(page, world) }
    expect((await world.api.call('POST', '/login', { body })).user_id).toBe(alice.userId)
    expect((await login(world.api, 'alice')).userId).toBe(alice.userId)
  })

  it('has nothing for strangers, nor for guests and those who left', async () => {
    await shows(await signIn('stranger'), 'You have no account here yet')
    const guest = await world.api.call('POST', '/register?kind=guest', { body: {} })
    world.provider.people.guest = { preferred_username: guest.user_id.slice(1).split(':')[0] }
    await shows(await signIn('guest'), 'You have no account here yet')
    const gone = await register(world.api, 'gone')
    const nid = '(SELECT user_nid FROM matrix_user WHERE user_id = $1)'
    await world.server.db.tx((tx) =>
      tx.query(`UPDATE account SET deactivated_at = 1 WHERE user_nid = ${nid}`, [gone.userId]),
    )
    await shows(await signIn('gone'), 'This account has been deactivated')
  })

  it('works without TLS too, with a cookie that says so', async () => {
    const page = await signIn('alice')
    const cookies = await page.context().cookies(world.origin)
    expect(cookies.find(({ name }) => name.includes('hearth'))).toMatchObject({ name: 'hearth-sso', sameSite: 'Lax' })
  })
})

describe.skipIf(chromiumPath() === undefined)('a server that is full', () => {
  let world: SsoWorld
  beforeAll(async () => {
    const values = { registration: { max_users: 1 }, well_known: { support_email: 'help@localhost' } }
    world = await openSsoWorld({ values })
    world.provider.people.late = { preferred_username: 'late' }
  })
  afterAll(() => world?.close())

  it('makes no account, and says why', async () => {
    const early = await register(world.api, 'early')
    const page = await world.freshPage()
    await page.goto(beginAt(world))
    await signInAtProvider(page, 'late')
    await shows(page, 'There is no room for another account')
    expect(await page.innerText('footer')).toContain('M_RESOURCE_LIMIT_EXCEEDED')
    const users = await world.server.db.query('SELECT user_id FROM account JOIN matrix_user USING (user_nid)')
    expect(users).toEqual([{ user_id: early.userId }])
  })
})
