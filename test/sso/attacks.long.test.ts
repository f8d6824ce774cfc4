import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath } from '../support/browser.ts'
import type { Tampering } from './provider.ts'
import { passProvider } from './without-browser.ts'
import { beginAt, openSsoWorld, type SsoWorld, shows, signInAtProvider } from './world.ts'

describe.skipIf(chromiumPath() === undefined)('single sign-on under attack', () => {
  let world: SsoWorld
  beforeAll(async () => {
    world = await openSsoWorld({
      values: { sso: { trusted_clients: ['https://app.trusted.test/web', 'element://connect'] } },
    })
    world.provider.people.alice = { preferred_username: 'alice' }
  })
  afterAll(() => world?.close())

  const accounts = () => world.server.db.query('SELECT user_nid FROM account')

  const lies: [name: string, tampering: Tampering][] = [
    ['of another issuer', (claims, sign) => sign({ ...claims, iss: 'https://evil.test' })],
    ['with another nonce', (claims, sign) => sign({ ...claims, nonce: 'another' })],
    ['without a nonce', ({ nonce: _, ...claims }, sign) => sign(claims)],
    ['signed by another key', (claims, sign) => sign(claims, 'wrong')],
    [
      'signed by nobody',
      (claims) => {
        const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
        return `${encode({ alg: 'none' })}.${encode(claims)}.`
      },
    ],
    ['for another client', (claims, sign) => sign({ ...claims, aud: 'another' })],
    ['that has expired', (claims, sign) => sign({ ...claims, exp: 1_000_000 })],
    [
      'changed after it was signed',
      (claims, sign) => sign(claims).replace(/\.([\w-]+)\./, (_, body) => `.${changed(body)}.`),
    ],
    ['that is none', () => 'no token at all'],
  ]
  it.each(lies)('believes no ID token %s', async (_name, tampering) => {
    const page = await world.freshPage()
    await page.goto(beginAt(world))
    world.provider.tampering = tampering
    try {
      await signInAtProvider(page, 'alice')
      await shows(page, 'We could not verify who you are')
    } finally {
      world.provider.tampering = undefined
    }
    expect(await accounts()).toEqual([])
    expect(await world.server.db.query('SELECT 1 AS one FROM login_token')).toEqual([])
  })

  it('takes no answer that names another issuer, and none with another code', async () => {
    for (const [name, value] of [
      ['iss', 'https://evil.test'],
      ['code', 'invented'],
    ] as const) {
      const begun = await redirect('https://a.test/')
      const cookie = begun.headers.get('set-cookie')?.split(';')[0] ?? ''
      const callback = await passProvider(new URL(begun.headers.get('location') ?? ''), 'alice')
      callback.searchParams.set(name, value)
      const answer = await ask(callback.pathname + callback.search, { headers: { cookie } })
      expect(answer.status, name).toBe(403)
      expect(await answer.text()).toContain('We could not verify who you are')
    }
  })

  it('says in the log what was wrong', () => {
    const lines = world.server
      .logged()
      .split('\n')
      .filter((line) => line.includes('failed at the provider'))
    expect(lines.length).toBeGreaterThanOrEqual(lies.length)
    expect(lines.join()).toContain('"provider":"example"')
    expect(lines.join()).toContain('OAUTH_JWT_CLAIM_COMPARISON_FAILED')
  })

  /** Asks as a browser does, without following. */
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(world.server.baseUrl + path, { redirect: 'manual', ...init })
  const redirect = (redirectUrl: string) =>
    ask(`/_matrix/client/v3/login/sso/redirect/example?${new URLSearchParams({ redirectUrl })}`)

  it.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\tscript:alert(1)',
    ' javascript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:msgbox(1)',
    'file:///etc/passwd',
    'blob:https://a.test/1',
    'about:blank',
    'view-source:https://a.test',
    'intent://a#Intent;scheme=https;end',
    'ms-msdt:/id',
    'https:evil.test',
    'https:///evil.test',
    'https:\\\\evil.test',
    'https://app.trusted.test@evil.test/',
    'https://user:word@app.trusted.test/',
    '//evil.test',
    '/relative',
    'evil.test',
    'https://a.test/\r\nSet-Cookie: x=y',
    'https://a.test/"><script>',
    `https://a.test/${'x'.repeat(3_000)}`,
    '',
  ])('sends nobody to %j', async (address) => {
    const answer = await redirect(address)
    expect(answer.status).toBe(400)
    expect(answer.headers.get('location')).toBeNull()
    expect(answer.headers.get('content-type')).toContain('text/html')
    expect(await answer.text()).toContain('M_INVALID_PARAM')
  })

  it.each([
    ['without an address', '/_proto/client/r0/login/sso/redirect', 400],
    ['through an unknown provider', '/_proto/client/r0/login/sso/redirect/other?redirectUrl=https%3A%2F%2Fa.test', 404],
    ['with an invented answer', '/_hearth/sso/callback?code=a&state=b', 400],
    ['with no answer', '/_hearth/sso/callback', 400],
    ['to an invented choice of a name', '/_hearth/sso/name?flow=x', 400],
    ['to an invented proof', '/_hearth/sso/prove?session=x&provider=example', 400],
  ])('leads nowhere %s', async (_name, path, status) => {
    const answer = await ask(path)
    const text = await answer.text()
    expect([answer.status, answer.headers.get('location')]).toEqual([status, null])
    expect(text).toContain('<h1>')
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(answer.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  it('writes nothing onto a page that runs there', async () => {
    world.provider.people.mallory = {
      preferred_username: '"><script>alert(1)</script>',
      name: '<img src=x onerror=alert(1)>',
    }
    const page = await world.freshPage()
    page.on('dialog', () => expect.unreachable())
    await page.goto(beginAt(world))
    await signInAtProvider(page, 'mallory')
    await shows(page, 'Choose a user name')
    expect(await page.locator('main script, main img').count()).toBe(0)
    expect(await page.innerText('main')).toContain('<img src=x onerror=alert(1)>')
  })

  it('makes no account by a form of another site, nor without the cookie', async () => {
    world.provider.people.nora = { preferred_username: 'not a name' }
    const page = await world.freshPage()
    await page.goto(beginAt(world))
    await signInAtProvider(page, 'nora')
    await shows(page, 'Choose a user name')
    const flow = await page.inputValue('input[name=flow]')
    const [cookie] = (await page.context().cookies(world.origin)).filter(({ name }) => name.includes('hearth'))
    const before = (await accounts()).length
    const post = (headers: Record<string, string>) => {
      const body = new URLSearchParams({ flow, username: 'stolen' })
      return ask('/_hearth/sso/name', { method: 'POST', headers, body })
    }
    const own = `${cookie?.name}=${cookie?.value}`
    expect((await post({})).status).toBe(400)
    expect((await post({ cookie: `${cookie?.name}=${'A'.repeat(43)}` })).status).toBe(400)
    expect((await post({ cookie: own, 'sec-fetch-site': 'cross-site' })).status).toBe(400)
    expect(await accounts()).toHaveLength(before)
    // Of many at once one makes the account.
    const answers = await Promise.all(Array.from({ length: 20 }, () => post({ cookie: own })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await accounts()).toHaveLength(before + 1)
  })

  describe('the list of trusted clients', () => {
    const arrivals: [address: string, isTrusted: boolean][] = [
      ['https://app.trusted.test/web', true],
      ['https://app.trusted.test/web/', true],
      ['https://app.trusted.test/web/deep?x=1', true],
      ['https://app.trusted.test/', false],
      ['https://app.trusted.test/website', false],
      ['https://app.trusted.test/web/../evil', false],
      ['https://app.trusted.test.evil.test/web', false],
      ['https://app.trusted.test:8443/web', false],
      ['http://app.trusted.test/web', false],
      ['element://connect?x=1', true],
      ['element://other', false],
    ]
    it.each(arrivals)('%s: %s', async (address, isTrusted) => {
      const begun = await redirect(address)
      const cookie = begun.headers.get('set-cookie')?.split(';')[0] ?? ''
      const at = new URL(begun.headers.get('location') ?? '')
      const callback = await passProvider(at, 'alice')
      const answer = await ask(callback.pathname + callback.search, { headers: { cookie } })
      if (isTrusted) {
        expect(answer.status).toBe(302)
        expect(answer.headers.get('location')).toMatch(/[?&]loginToken=hearth_login_/)
        expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
      } else {
        expect(answer.status).toBe(200)
        expect(answer.headers.get('location')).toBeNull()
      }
    })
  })
})

const changed = (body: string): string => {
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  return Buffer.from(JSON.stringify({ ...claims, sub: 'admin' })).toString('base64url')
}
