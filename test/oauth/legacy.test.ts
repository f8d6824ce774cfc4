import { afterEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { register } from '../support/api.ts'
import { type OauthWorld, openOauthWorld, session, whoami } from './world.ts'

let world: OauthWorld
const opened: OauthWorld[] = []

async function open(values?: object): Promise<void> {
  world = await openOauthWorld(values)
  opened.push(world)
}

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
})

const LEGACY = 'https://old.example.com/back?x=1'

describe('clients that do not know OAuth', () => {
  it('log in as before, and those that know it are told to prefer it', async () => {
    await open()
    await register(world.api, 'alice')
    const { flows } = await world.api.call('GET', '/login')
    expect(flows).toContainEqual({ type: 'm.login.password' })
    expect(flows).toContainEqual({
      type: 'm.login.sso',
      oauth_aware_preferred: true,
      'org.matrix.msc3824.delegated_oidc_compatibility': true,
    })
  })

  it.each(['v3', 'r0'])('are given a login token by the pages (%s)', async (release) => {
    await open()
    await register(world.api, 'alice')
    const browser = world.browser()
    const begin = `/_matrix/client/${release}/login/sso/redirect?${new URLSearchParams({ redirectUrl: LEGACY })}`
    const page = await browser.signIn(await browser.open(begin), 'alice')
    expect(page.heading).toBe('Almost there')
    expect(page.text).toContain('@alice:localhost')
    const link = /class="button" href="([^"]+)"/.exec(page.text)?.[1]?.replaceAll('&#38;', '&') ?? ''
    expect(link.startsWith(LEGACY)).toBe(true)
    const token = new URL(link).searchParams.get('loginToken')
    const login = await world.api.call('POST', '/login', { body: { type: 'm.login.token', token } })
    expect(login.user_id).toBe('@alice:localhost')
  })

  it('get one only from a person who has just shown who they are: it counts as such a proof', async () => {
    await open()
    await register(world.api, 'alice')
    const browser = world.browser()
    await browser.signIn(await browser.open('/_hearth/account'), 'alice')
    world.advance(11 * 60_000)
    const page = await browser.open(`/_hearth/account/continue?${new URLSearchParams({ redirectUrl: LEGACY })}`)
    expect(page.heading).toBe('Confirm that it is you')
    expect((await browser.signIn(page, 'alice')).heading).toBe('Almost there')
  })

  it.each(['action', 'org.matrix.msc3824.action'])('can lead to a new account (%s)', async (name) => {
    await open({ registration: { enabled: true } })
    const query = new URLSearchParams({ redirectUrl: LEGACY, [name]: 'REGISTER' })
    const page = await world.browser().open(`/_matrix/client/v3/login/sso/redirect?${query}`)
    expect(page.heading).toBe('Create an account')
  })

  it('cannot be led to an address that runs code', async () => {
    await open()
    const query = new URLSearchParams({ redirectUrl: 'javascript:alert(1)' })
    const page = await world.browser().open(`/_hearth/account/continue?${query}`)
    expect(page.status).toBe(400)
  })
})

describe('a server on which people sign in by OAuth only', () => {
  it('refuses the older ways, and says why', async () => {
    await open({ oauth: { legacy_login: false }, registration: { enabled: true } })
    const flows = await world.api.request('GET', '/login')
    expect([flows.status, flows.body.errcode]).toEqual([404, 'M_UNRECOGNIZED'])
    const body = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'alice' }, password: 'x' }
    const login = await world.api.request('POST', '/login', { body })
    expect([login.status, login.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    for (const kind of ['user', 'guest']) {
      const answer = await world.api.request('POST', `/register?kind=${kind}`, { body: {} })
      expect([answer.status, answer.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    }
    const browser = world.browser()
    const form = await browser.open('/_hearth/account/sign-up')
    const password = 'correct horse battery staple'
    await browser.submit(form, { username: 'bob', password, repeated: password })
    const tokens = await session(world, await world.client(), 'bob')
    expect((await whoami(world, tokens.access_token)).body.user_id).toBe('@bob:localhost')
  })

  it('needs an address that it can tell clients', () => {
    expect(() => loadConfig({ values: { oauth: { legacy_login: false } }, directory: '/' })).toThrow(/public_base_url/)
  })
})
