import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CAPTCHA_VENDORS } from '../../../src/core/captcha-vendors.ts'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type Api, type Json, openApi, PASSWORD } from '../../support/api.ts'
import { chromiumPath, openBrowser, type TestBrowser } from '../../support/browser.ts'
import { type CaptchaVendorServer, GOOD_ANSWER, startCaptchaVendor } from '../../support/captcha-vendor.ts'

const SECRET = 'canary-captcha-secret'
const FLOW = ['m.login.registration_token', 'm.login.recaptcha', 'm.login.terms']

let directory: string
let vendor: CaptchaVendorServer
let server: AccountServer
let api: Api

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-policies-'))
  await writeFile(join(directory, 'privacy-1-en.txt'), '# Privacy\n\nWe keep what you write & nothing else.')
  vendor = await startCaptchaVendor(SECRET)
  server = await startAccountServer({
    server_name: 'hearth.example',
    registration: {
      enabled: true,
      token: 'let-me-in',
      require_token: true,
      captcha: { vendor: 'recaptcha', site_key: 'site-key"<>', secret: SECRET, verify_url: vendor.url },
      terms: {
        directory,
        policies: [
          { id: 'privacy', version: '1', languages: [{ language: 'en', name: 'Privacy <Policy>' }] },
          { id: 'terms', version: '2', languages: [{ language: 'en', name: 'Terms', url: 'https://x.test/terms' }] },
        ],
      },
    },
  })
  api = openApi(server.baseUrl)
})

afterAll(async () => {
  await api.close()
  await server.close()
  await vendor.close()
  await rm(directory, { recursive: true })
})

const register = (body: Json) => api.request('POST', '/register', { body })
const begin = async (): Promise<string> => (await register({})).body.session
const pathOf = (stage: string, session: string) =>
  `${server.baseUrl}/_matrix/client/v3/auth/${stage}/fallback/web?session=${encodeURIComponent(session)}`
const complete = (session: string, stages: readonly string[]) =>
  stages.reduce(
    (before, stage) => before.then(() => server.services.interactiveAuth.complete(session, stage, {})),
    Promise.resolve(),
  )

async function show(stage: string, session: string): Promise<Response & { html: string }> {
  const answer = await fetch(pathOf(stage, session))
  return Object.assign(answer, { html: await answer.text() })
}

async function send(stage: string, fields: Record<string, string>, headers: Record<string, string> = {}) {
  const answer = await fetch(pathOf(stage, fields.session ?? ''), {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields),
  })
  return { status: answer.status, html: await answer.text() }
}

describe('the stages of registration', () => {
  it('are told with what each needs', async () => {
    const { status, body } = await register({})
    expect(status).toBe(401)
    expect(body.flows).toEqual([{ stages: FLOW }])
    expect(body.params).toEqual({
      'm.login.recaptcha': { public_key: 'site-key"<>' },
      'm.login.terms': {
        policies: {
          privacy: {
            version: '1',
            en: { name: 'Privacy <Policy>', url: expect.stringMatching(/\/policies\/privacy\/1\/en$/) },
          },
          terms: { version: '2', en: { name: 'Terms', url: 'https://x.test/terms' } },
        },
      },
    })
  })

  it('are completed by a client on its own, and what was accepted is noted', async () => {
    const wish = { username: 'native', password: PASSWORD }
    const session = await begin()
    const auths: [auth: Json, completed: string[], errcode?: string][] = [
      [{ type: 'm.login.registration_token', token: 'wrong' }, [], 'M_UNAUTHORIZED'],
      [{ type: 'm.login.registration_token', token: 'let-me-in' }, FLOW.slice(0, 1)],
      [{ type: 'm.login.recaptcha' }, FLOW.slice(0, 1), 'M_CAPTCHA_NEEDED'],
      [{ type: 'm.login.recaptcha', response: 'bad' }, FLOW.slice(0, 1), 'M_CAPTCHA_INVALID'],
      [{ type: 'm.login.recaptcha', response: 'x'.repeat(10_000) }, FLOW.slice(0, 1), 'M_CAPTCHA_INVALID'],
      [{ type: 'm.login.recaptcha', response: GOOD_ANSWER }, FLOW.slice(0, 2)],
    ]
    for (const [auth, completed, errcode] of auths) {
      const { status, body } = await register({ ...wish, auth: { ...auth, session } })
      expect([status, body.completed ?? [], body.errcode]).toEqual([401, completed, errcode])
    }
    const last = await register({ ...wish, auth: { type: 'm.login.terms', session } })
    expect(last.status).toBe(200)
    expect(vendor.asked.at(-1)?.get('response')).toBe(GOOD_ANSWER)
    expect([...(vendor.asked.at(-1)?.keys() ?? [])].sort()).toEqual(['response', 'secret'])
    const accepted = await server.db.query(
      `SELECT url FROM accepted_policy JOIN matrix_user USING (user_nid) WHERE user_id = '@native:hearth.example'`,
    )
    expect(accepted.map(({ url }) => url).sort()).toEqual([
      expect.stringMatching(/\/policies\/privacy\/1\/en$/),
      'https://x.test/terms',
    ])
  })

  it('do not count an answer that the vendor did not judge', async () => {
    const session = await begin()
    await complete(session, FLOW.slice(0, 1))
    const auth = { type: 'm.login.recaptcha', response: `${GOOD_ANSWER}-2`, session }
    for (const body of ['{"success":"true"}', 'null', '<html>', '{}']) {
      vendor.broken = { status: 200, body }
      expect(await register({ auth })).toMatchObject({ status: 503, body: { errcode: 'M_UNKNOWN' } })
    }
    vendor.broken = { status: 500, body: '{"success":true}' }
    expect(await register({ auth })).toMatchObject({ status: 503 })
    vendor.broken = undefined
  })
})

describe('fallback pages over HTTP', () => {
  it('allow nothing but their own form, and what the captcha needs', async () => {
    const session = await begin()
    const token = await show('m.login.registration_token', session)
    expect(token.status).toBe(200)
    const policy = token.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("form-action 'self'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/script-src|unsafe|https:/)
    expect(token.headers.get('cache-control')).toBe('no-store')
    expect(token.headers.get('referrer-policy')).toBe('no-referrer')
    await complete(session, FLOW.slice(0, 1))
    const captcha = await show('m.login.recaptcha', session)
    const scripts = captcha.headers.get('content-security-policy')?.match(/script-src ([^;]*)/)?.[1]
    expect(scripts).toBe(CAPTCHA_VENDORS.recaptcha.origins.join(' '))
    expect(captcha.html).toContain('data-sitekey="site-key&#34;&#60;&#62;"')
    await complete(session, FLOW.slice(1, 2))
    expect((await show('m.login.terms', session)).html).toContain('>Privacy &#60;Policy&#62;</a>')
  })

  it.each(['m.login.registration_token', 'm.login.recaptcha', 'm.login.terms', 'm.login.dummy', 'm.login.x'])(
    'of %s say nothing about a session that is not at that step',
    async (stage) => {
      const session = await begin()
      await complete(
        session,
        FLOW.filter((each) => each !== stage && FLOW.indexOf(each) < FLOW.indexOf(stage)).slice(0, -1),
      )
      const sessions = stage === 'm.login.registration_token' ? [] : [session]
      for (const wrong of [...sessions, 'x'.repeat(24), '', '"><script>alert(1)</script>', "'; DROP TABLE account"]) {
        const shown = await show(stage, wrong)
        expect(shown.status).toBe(404)
        expect(shown.html).not.toContain('<script>alert')
        expect((await send(stage, { session: wrong, token: 'let-me-in' })).status).toBe(404)
      }
    },
  )

  it('take no form that another site sends', async () => {
    const session = await begin()
    const fields = { session, token: 'let-me-in' }
    const foreign = await send('m.login.registration_token', fields, { 'sec-fetch-site': 'cross-site' })
    expect(foreign.status).toBe(403)
    expect((await server.services.interactiveAuth.look(session))?.completed).toEqual([])
    const own = await send('m.login.registration_token', fields, { 'sec-fetch-site': 'same-origin' })
    expect(own.status).toBe(200)
  })

  it('show again what was wrong, escaped, and let it be tried again', async () => {
    const session = await begin()
    const wrong = await send('m.login.registration_token', { session, token: '"><script>alert(1)</script>' })
    expect(wrong.status).toBe(401)
    expect(wrong.html).toContain('This registration token is not valid.')
    expect(wrong.html).not.toContain('alert(1)')
    expect((await send('m.login.registration_token', { session, token: ' let-me-in ' })).html).toContain('Thank you')
    expect((await send('m.login.registration_token', { session, token: 'again' })).html).toContain('Thank you')
    expect((await show('m.login.registration_token', session)).html).toContain('Thank you')
  })

  it("wants the account's own password where the session has one", async () => {
    const wish = { username: 'paula', password: PASSWORD }
    const session = await begin()
    await complete(session, FLOW)
    const paula = (await register({ ...wish, auth: { session } })).body
    const eveSession = await begin()
    await complete(eveSession, FLOW)
    await register({ username: 'eve', password: 'the password of eve', auth: { session: eveSession } })
    const ask = (auth?: Json) =>
      api.request('DELETE', `/devices/${paula.device_id}`, { token: paula.access_token, body: auth ? { auth } : {} })
    const uia = (await ask()).body.session
    const shown = await show('m.login.password', uia)
    expect(shown.html).toContain('@paula:hearth.example')
    expect((await send('m.login.password', { session: uia, password: 'the password of eve' })).status).toBe(403)
    expect((await send('m.login.password', { session: uia })).status).toBe(400)
    expect((await send('m.login.password', { session: uia, password: PASSWORD })).status).toBe(200)
    expect((await ask({ session: uia })).status).toBe(200)
  })

  it('show the policies that are kept here', async () => {
    const page = await fetch(`${server.baseUrl}/policies/privacy/1/en`)
    expect(await page.text()).toContain('We keep what you write &#38; nothing else.')
    for (const path of ['terms/2/en', 'privacy/2/en', 'privacy/1/de', '..%2f..%2fetc/1/en']) {
      expect((await fetch(`${server.baseUrl}/policies/${path}`)).status).toBe(404)
    }
  })

  it('leave no secret in the log', () => {
    for (const canary of [SECRET, PASSWORD, 'let-me-in', GOOD_ANSWER]) expect(server.logged()).not.toContain(canary)
  })
})

/** What a page did that its own policy, or we, do not want. */
function watch(page: Page): string[] {
  const wrongs: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of 401/.test(message.text())) wrongs.push(message.text())
  })
  page.on('pageerror', (error) => wrongs.push(error.message))
  return wrongs
}

describe.skipIf(chromiumPath() === undefined)('fallback pages in a browser', () => {
  let browser: TestBrowser

  beforeAll(async () => {
    browser = await openBrowser()
  })

  afterAll(() => browser.close())

  const shots = process.env.SCREENSHOTS
  const shoot = async (page: Page, name: string) => {
    if (shots !== undefined) await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true })
  }

  /** The vendor's script, that cannot be had here: it leaves an answer as the real one does. */
  const WIDGET = `for (const place of document.querySelectorAll('.g-recaptcha')) {
    const field = document.createElement('textarea')
    field.name = 'g-recaptcha-response'
    field.hidden = true
    field.value = '${GOOD_ANSWER}-' + Math.random()
    place.append(field, 'solved for ' + place.dataset.sitekey)
  }`

  const viewports = [
    { name: 'phone', viewport: { width: 360, height: 740 }, colorScheme: 'light' },
    { name: 'phone-dark', viewport: { width: 360, height: 740 }, colorScheme: 'dark' },
    { name: 'desk', viewport: { width: 1280, height: 800 }, colorScheme: 'light' },
    { name: 'desk-dark', viewport: { width: 1280, height: 800 }, colorScheme: 'dark' },
  ] as const

  it.each(viewports)('lead to an account ($name)', async ({ name, viewport, colorScheme }) => {
    const context = await browser.newContext({ viewport, colorScheme })
    await context.route(`${CAPTCHA_VENDORS.recaptcha.script}*`, (route) =>
      route.fulfill({ contentType: 'text/javascript', body: WIDGET }),
    )
    const session = await begin()
    const client = await context.newPage()
    await client.goto(`${server.baseUrl}/_matrix/client/versions`)
    await client.evaluate(
      "window.heard = []; window.addEventListener('message', ({ data }) => window.heard.push(data))",
    )
    const wrongs = watch(client)
    for (const stage of FLOW) {
      const opened = context.waitForEvent('page')
      await client.evaluate(`void window.open(${JSON.stringify(pathOf(stage, session))})`)
      const page = await opened
      wrongs.push(...watch(page))
      await page.waitForLoadState('load')
      await shoot(page, `${stage}-${name}`)
      expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
      if (stage === 'm.login.registration_token') {
        await page.getByLabel('Token').fill('mistyped')
        await page.getByRole('button').click()
        await page.getByRole('alert').waitFor()
        await shoot(page, `${stage}-wrong-${name}`)
        await page.getByLabel('Token').fill('let-me-in')
      }
      if (stage === 'm.login.recaptcha') await page.getByText('solved for').waitFor()
      for (const box of await page.getByRole('checkbox').all()) await box.check()
      await page.getByRole('button').click()
      await page.getByRole('heading', { name: 'Thank you' }).waitFor()
      await shoot(page, `done-${name}`)
      await page.close()
    }
    expect(await client.evaluate('window.heard')).toEqual(FLOW.map(() => 'authDone'))
    expect(wrongs).toEqual([])
    const answer = await register({ username: `browser-${name}`, password: PASSWORD, auth: { session } })
    expect(answer.status).toBe(200)
    await context.close()
  })

  it('cannot be passed without accepting', async () => {
    const page = await (await browser.newContext()).newPage()
    const session = await begin()
    await complete(session, FLOW.slice(0, 2))
    await page.goto(pathOf('m.login.terms', session))
    await page.getByRole('button').click()
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Please read and accept')
    expect((await server.services.interactiveAuth.look(session))?.completed).toEqual(FLOW.slice(0, 2))
    await page.close()
  })
})
