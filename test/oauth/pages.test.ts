import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../support/api.ts'
import { type Browsing, hiddenOf, type Page } from '../support/browsing.ts'
import { addressOf, allow, answerIn, type OauthWorld, openOauthWorld, requestOf } from './world.ts'

/** What browsers say when they open a page. */
const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*', 'accept-language': 'en' }

let world: OauthWorld
let client: string

beforeAll(async () => {
  world = await openOauthWorld()
  client = await world.client()
  await world.account('alice')
  await world.account('mallory')
})
afterAll(() => world.close())

async function atConsent(browser: Browsing, name = 'alice'): Promise<Page> {
  const page = await browser.open(addressOf(world, requestOf(client)))
  return page.heading === 'Sign in' ? browser.signIn(page, name) : page
}

describe('no other site can use these pages', () => {
  it('as a frame, or with a script', async () => {
    const browser = world.browser()
    const pages = [
      await browser.open('/_hearth/account/sign-in'),
      await atConsent(browser),
      await browser.open('/_hearth/account/link'),
      await browser.open('/_hearth/oauth/authorize'),
      await browser.open('/_hearth/oauth/consent/unknown'),
    ]
    for (const { headers, url } of pages) {
      const policy = headers.get('content-security-policy') ?? ''
      expect(policy, url.href).toContain("frame-ancestors 'none'")
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("base-uri 'none'")
      expect(policy).not.toContain('unsafe')
      expect(policy).not.toMatch(/script-src/)
      expect(headers.get('x-frame-options')).toBe('DENY')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('cache-control')).toBe('no-store')
    }
    expect(pages[1]!.headers.get('content-security-policy')).toContain("form-action 'self' https://app.example.com;")
  })

  it.each([
    ['without the mark of its form', { form: '' }, {}],
    ["with the mark of another browser's form", { form: 'A'.repeat(43) }, {}],
    ['from another site', {}, { 'sec-fetch-site': 'cross-site' }],
    ['from a neighbouring site', {}, { 'sec-fetch-site': 'same-site' }],
  ])('to give a consent: %s', async (_what, fields, headers) => {
    const browser = world.browser()
    const consent = await atConsent(browser)
    const page = await browser.submit(consent, { decision: 'allow', ...fields }, headers as Record<string, string>)
    expect(page.status).toBe(403)
    expect(page.left).toBeUndefined()
  })

  it('to sign somebody in as somebody else: a form belongs to its browser', async () => {
    const [mallory, alice] = [world.browser(), world.browser()]
    const form = hiddenOf(await mallory.open('/_hearth/account/sign-in'))
    await alice.open('/_hearth/account/sign-in')
    const fields = { ...form, username: 'mallory', password: 'correct horse battery staple' }
    const page = await alice.open('/_hearth/account/sign-in', fields)
    expect(page.status).toBe(403)
    expect([...alice.jar.keys()].some((key) => key.startsWith('hearth-account'))).toBe(false)
  })

  it("with the form of a consent that was made for another person in the same browser's past", async () => {
    const browser = world.browser()
    const consent = await atConsent(browser)
    await browser.signIn(await browser.open('/_hearth/account/sign-in'), 'mallory')
    expect((await browser.submit(consent, { decision: 'allow' })).status).toBe(403)
  })
})

describe('an authorisation belongs to its browser', () => {
  it('and cannot be continued in another', async () => {
    const consent = await atConsent(world.browser())
    const other = world.browser()
    await other.signIn(await other.open('/_hearth/account/sign-in'), 'mallory')
    const page = await other.open(consent.url)
    expect(page.heading).toBe('This sign-in has ended')
    const resumed = await other.open(consent.url.pathname.replace('consent', 'authorize'))
    expect(resumed.left).toBeUndefined()
    expect(resumed.status).toBe(400)
  })

  it('and two in one browser do not mix', async () => {
    const browser = world.browser()
    const [one, two] = [requestOf(client), requestOf(client)]
    const first = await browser.signIn(await browser.open(addressOf(world, one)), 'alice')
    const second = await browser.open(addressOf(world, two))
    expect(answerIn(await browser.submit(first, { decision: 'allow' })).get('state')).toBe(one.parameters.state)
    expect(answerIn(await browser.submit(second, { decision: 'allow' })).get('state')).toBe(two.parameters.state)
  })

  it('and is finished once', async () => {
    const browser = world.browser()
    const consent = await atConsent(browser)
    expect((await browser.submit(consent, { decision: 'allow' })).left).toBeDefined()
    const again = await browser.submit(consent, { decision: 'allow' })
    expect(again.left).toBeUndefined()
    expect(again.heading).toBe('This sign-in has ended')
  })
})

describe('after signing in, people go only to pages of this server', () => {
  it.each([
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example',
    'javascript:alert(1)',
    '/_hearth/account/../../evil',
    '/_hearth/oauth/consent/x?y=https://evil.example/',
    '/_matrix/client/versions',
    '/_hearth/account\r\nx: y',
  ])('and not to %j', async (next) => {
    const browser = world.browser()
    const page = await browser.open(`/_hearth/account/sign-in?${new URLSearchParams({ next })}`)
    expect(hiddenOf(page).next).toBe('/_hearth/account')
    const form = { ...hiddenOf(page), next, username: 'alice', password: 'correct horse battery staple' }
    const answer = await browser.open(page.url, form)
    expect(answer.left).toBeUndefined()
    expect(answer.url.pathname).toBe('/_hearth/account')
  })
})

describe('a browser that is signed in', () => {
  const cookieOf = (browser: Browsing) => browser.jar.get('hearth-account /')?.value

  it('gets a secret that nobody could know before', async () => {
    const browser = world.browser()
    browser.jar.set('hearth-account /', { value: 'A'.repeat(43), path: '/' })
    await browser.signIn(await browser.open('/_hearth/account/sign-in'), 'alice')
    expect(cookieOf(browser)).not.toBe('A'.repeat(43))
    expect(cookieOf(browser)).toMatch(/^[\w-]{43}$/)
  })

  it('has a cookie that scripts and other sites do not get', async () => {
    const browser = world.browser()
    const page = await browser.open('/_hearth/account/sign-in')
    const cookies = page.headers.getSetCookie()
    expect(cookies).toHaveLength(1)
    expect(cookies[0]).toMatch(/; HttpOnly; SameSite=Lax;/)
  })

  it('is signed out after an hour without use, and when the password changes', async () => {
    const browser = world.browser()
    await atConsent(browser)
    world.advance(61 * 60_000)
    expect((await browser.open(addressOf(world, requestOf(client)))).heading).toBe('Sign in')
    const other = await world.account('changing')
    const second = world.browser()
    await allow(world, requestOf(client), 'changing', second)
    const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'changing' } }
    const body = {
      auth: { ...auth, password: 'correct horse battery staple' },
      new_password: 'another horse battery staple',
      logout_devices: false,
    }
    await world.api.call('POST', '/account/password', { token: other.token, body })
    expect((await second.open(addressOf(world, requestOf(client)))).heading).toBe('Sign in')
  })

  it('is told of a wrong password, as often as it may try', async () => {
    const browser = world.browser()
    const page = await browser.signIn(await browser.open('/_hearth/account/sign-in'), 'alice', 'wrong')
    expect(page.status).toBe(403)
    expect(page.text).toContain('The user name or the password is wrong.')
    expect(page.text).toContain('value="alice"')
    expect(page.text).not.toContain('wrong"')
  })
})

describe('the reason of a refusal', () => {
  it('is for the people who make the app: in English, and marked so for readers of other pages', async () => {
    const address = addressOf(world, requestOf(client, { redirect_uri: 'https://evil.example/<b>' }))
    const open = async (language: string): Promise<string> =>
      (await fetch(address, { headers: { ...BROWSER, 'accept-language': language } })).text()
    const german = await open('de')
    expect(german).toContain('<html lang="de"')
    expect(german).toMatch(/Der technische Grund, auf Englisch: <code lang="en">invalid_redirect_uri: [^<]+<\/code>/)
    expect(await open('en')).toMatch(/The technical reason: <code lang="en">invalid_redirect_uri: [^<]+<\/code>/)
  })
})

describe('an error', () => {
  it('is a page in their language for people in a browser, and JSON for apps', async () => {
    const address = `${world.origin}/_hearth/account/sign-in?next=a&next=b`
    const page = await fetch(address, { headers: { ...BROWSER, 'accept-language': 'de' } })
    expect(page.status).toBe(400)
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    const text = await page.text()
    expect(text).toContain('<h1>Das hat nicht geklappt</h1>')
    expect(text).toContain('Diese Angabe kann nicht angenommen werden.')
    const json = await fetch(address, { headers: { accept: 'application/json' } })
    expect([json.status, await json.json()]).toEqual([400, expect.objectContaining({ errcode: 'M_INVALID_PARAM' })])
  })

  it('is told apart by caches: both forms name the headers that they depend on', async () => {
    for (const path of ['/_hearth/account/sign-in?next=a&next=b', '/nothing']) {
      const page = await fetch(world.origin + path, { headers: BROWSER })
      const json = await fetch(world.origin + path, { headers: { accept: 'application/json' } })
      const varies = [page, json].map(({ headers }) => [headers.get('content-type'), headers.get('vary')])
      expect(varies).toEqual([
        ['text/html; charset=utf-8', 'accept, accept-language'],
        ['application/json', 'accept'],
      ])
    }
    const api = await fetch(`${world.origin}/_matrix/client/v3/nothing`, { headers: BROWSER })
    expect(api.headers.get('vary')).toBeNull()
  })

  it.each([
    ['GET', '/nothing', 404, 'There is nothing at this address.'],
    ['GET', '/_hearth/account/sign-out', 405, 'a form leads there.'],
    ['GET', '/policies/none/1/en', 404, 'This did not work'],
    ['GET', '/%', 400, ''],
  ])('is a page at an address that is none, too: %s %s', async (method, path, status, words) => {
    const page = await fetch(world.origin + path, { method, headers: BROWSER })
    const text = await page.text()
    expect(page.status).toBe(status)
    expect(text).toContain(words)
    if (words === '') return
    expect(text).toContain('<html lang="en">')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  })

  it.each([
    '/_matrix/client/v3/nothing',
    '/_proto/client/v3/nothing',
    '/_synapse/admin/v1/nothing',
    '/.well-known/none',
    '/_hearth/admin/v1/nothing',
    '/_hearth/livekit/nothing',
  ])('is JSON where programs ask, whatever they would like: %s', async (path) => {
    const answer = await fetch(world.origin + path, { headers: BROWSER })
    expect([answer.status, ((await answer.json()) as Json).errcode]).toEqual([404, 'M_UNRECOGNIZED'])
  })

  it.each([
    ['/_hearth/oauth/register', 400],
    ['/_matrix/client/unstable/hearth/validate/register/email/submitToken', 400],
    ['/_hearth/nothing', 404],
  ])('is JSON for programs whose library asks for HTML by itself: %s', async (path, status) => {
    const headers = { accept: 'text/html, image/gif, image/jpeg, */*; q=0.2', 'content-type': 'application/json' }
    const answer = await fetch(world.origin + path, { method: 'POST', headers, body: '{' })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([status, 'application/json'])
    expect(await answer.json()).toHaveProperty('errcode')
  })
})
