import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../support/api.ts'
import type { Browsing } from '../support/browsing.ts'
import { act as actIn, bearer, CONSOLE, type ConsoleWorld, factsIn, openConsoleWorld, signedIn } from './world.ts'

let world: ConsoleWorld

beforeAll(async () => {
  world = await openConsoleWorld({ registration: { enabled: true } })
  await world.person('alice')
})
afterAll(() => world.close())

const act = (browser: Browsing, method: string, path: string, headers: Record<string, string>, body?: object) =>
  actIn(world, browser, method, path, headers, body)
const LOCK = '/_matrix/client/v1/admin/lock/@alice:localhost'

describe('the console is there for administrators alone', () => {
  it('and sends all others to sign in', async () => {
    const page = await world.browsing().open(CONSOLE)
    expect([page.heading, page.url.pathname]).toEqual(['Sign in', '/_hearth/account/sign-in'])
    expect(page.url.searchParams.get('next')).toBe(CONSOLE)
  })

  it('also without the last slash', async () => {
    const page = await world.browsing().open('/_hearth/admin')
    expect(page.url.pathname).toBe('/_hearth/account/sign-in')
  })

  it('and refuses who is none', async () => {
    const browser = world.browsing()
    const page = await browser.signIn(await browser.open(CONSOLE), 'alice')
    expect([page.status, page.heading]).toEqual([403, 'This is for administrators'])
    expect(page.text).toContain('@alice:localhost')
    expect([...browser.jar.keys()].some((key) => key.includes('console'))).toBe(false)
  })

  it('its files too', async () => {
    const browser = world.browsing()
    const page = await signedIn(browser)
    const [, script = ''] = /<script type="module" src="([^"]+)"/.exec(page.text) ?? []
    const mine = await browser.open(script)
    expect([mine.status, mine.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
    expect(mine.headers.get('cache-control')).toBe('private, max-age=31536000, immutable')
    expect((await world.browsing().open(script)).status).toBe(401)
    expect((await browser.open(`${CONSOLE}files/..%2f..%2fmain.js`)).status).toBe(404)
    expect((await browser.open(`${CONSOLE}files/files.json`)).status).toBe(404)
  })

  it('also after a sign-in by OAuth or single sign-on, whose browser comes from another site', async () => {
    const browser = world.browsing()
    await signedIn(browser)
    const page = await browser.open(CONSOLE, undefined, { 'sec-fetch-site': 'cross-site' })
    expect(page.headers.get('refresh')).toBe(`0; url=${CONSOLE}`)
    expect(page.text).not.toContain('hearthcs_')
  })

  it('and the cookie of an account page that was left open opens no console', async () => {
    const browser = world.browsing()
    await browser.signIn(await browser.open('/_hearth/account'), 'boss')
    const jar = [...browser.jar]
    const [secret = ''] = jar.flatMap(([key, { value }]) => (key.startsWith('hearth-account') ? [value] : []))
    expect(secret).not.toBe('')
    const headers = { cookie: `hearth-console=${secret}` }
    const answer = await fetch(world.origin + CONSOLE, { headers, redirect: 'manual' })
    expect([answer.status, answer.headers.get('location')]).toEqual([303, expect.stringContaining('sign-in')])
  })

  it('needs a proof that was given just now', async () => {
    const browser = world.browsing()
    const first = await browser.open('/_hearth/account')
    await browser.signIn(first, 'boss')
    await world.server.database.db.tx((tx) =>
      tx.query('UPDATE web_session SET proven_at = proven_at - 700000, created_at = created_at - 700000'),
    )
    const page = await browser.open(CONSOLE)
    expect(page.heading).toBe('Confirm that it is you')
  })
})

describe('a page of the console', () => {
  it('may load, run and call nothing but this server, and nothing inline', async () => {
    const page = await signedIn(world.browsing())
    const policy = page.headers.get('content-security-policy') ?? ''
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"]) {
      expect(policy).toContain(part)
    }
    for (const part of ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"])
      expect(policy).toContain(part)
    expect(policy).toContain("require-trusted-types-for 'script'")
    expect(policy).not.toMatch(/unsafe|\*|data:|https?:/)
    expect(page.headers.get('x-frame-options')).toBe('DENY')
    expect(page.headers.get('cache-control')).toBe('no-store')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.text).not.toMatch(/<script(?![^>]* src=)| style=| on\w+=/)
  })

  it('has a cookie that scripts and other sites do not see', async () => {
    const browser = world.browsing()
    await browser.signIn(await browser.open('/_hearth/account'), 'boss')
    const cookie = [...browser.jar].map(([key, { value }]) => `${key.split(' ')[0]}=${value}`).join('; ')
    const answer = await fetch(world.origin + CONSOLE, { headers: { cookie } })
    const [line = ''] = answer.headers.getSetCookie().filter((each) => each.startsWith('hearth-console='))
    expect(line).toMatch(/; HttpOnly/)
    expect(line).toMatch(/; SameSite=Strict/)
    expect(line).not.toContain(factsIn({ text: await answer.text() }).token)
  })
})

describe('an act', () => {
  it('needs the cookie and the token of the page together', async () => {
    const [browser, other] = [world.browsing(), world.browsing()]
    const page = await signedIn(browser)
    const otherPage = await signedIn(other)
    expect((await act(browser, 'PUT', LOCK, {}, { locked: true })).body.errcode).toBe('M_MISSING_TOKEN')
    for (const [who, headers] of [
      [world.browsing(), bearer(page)],
      [browser, bearer(otherPage)],
      [browser, { authorization: 'Bearer hearthcs_' }],
      [browser, { authorization: `Bearer hearthcs_${'A'.repeat(43)}` }],
    ] as const) {
      const answer = await act(who, 'PUT', LOCK, headers, { locked: true })
      expect([answer.status, answer.body.errcode]).toEqual([401, 'M_UNKNOWN_TOKEN'])
    }
    expect((await act(browser, 'GET', LOCK, bearer(page))).body).toEqual({ locked: false })
    expect((await act(browser, 'PUT', LOCK, bearer(page), { locked: true })).body).toEqual({ locked: true })
    expect((await act(browser, 'PUT', LOCK, bearer(page), { locked: false })).status).toBe(200)
    const { acts } = await world.call('GET', '/_hearth/admin/v1/acts?target=@alice:localhost')
    expect(acts.slice(0, 2).map(({ actor, act: what, outcome }: Json) => [actor, what, outcome])).toEqual([
      ['@boss:localhost', 'PUT C1/admin/lock/{userId}', 'done'],
      ['@boss:localhost', 'PUT C1/admin/lock/{userId}', 'done'],
    ])
  })

  it('is of no use anywhere but in the admin API', async () => {
    const browser = world.browsing()
    const page = await signedIn(browser)
    expect((await act(browser, 'GET', '/_matrix/client/v3/account/whoami', bearer(page))).status).toBe(401)
    expect((await act(browser, 'POST', '/_matrix/client/v3/createRoom', bearer(page), {})).status).toBe(401)
  })

  it('cannot come from a person who made up a secret and its token', async () => {
    const browser = world.browsing()
    const page = await signedIn(browser)
    const { createHmac } = await import('node:crypto')
    const secret = 'A'.repeat(43)
    const token = createHmac('sha256', secret).update('console').digest('base64url')
    const headers = { cookie: `hearth-console=${secret}`, authorization: `Bearer hearthcs_${token}` }
    const answer = await fetch(world.origin + LOCK, { headers })
    expect(answer.status).toBe(401)
    expect(factsIn(page).token).not.toContain(token)
  })

  it('is refused once the right is gone, and once the session has ended', async () => {
    const browser = world.browsing()
    const page = await signedIn(browser)
    const { db } = world.server.database
    const setAdmin = (isAdmin: boolean) =>
      db.tx((tx) =>
        tx.query(
          "UPDATE account SET is_admin = $1 WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = '@boss:localhost')",
          [isAdmin],
        ),
      )
    await setAdmin(false)
    expect((await act(browser, 'GET', LOCK, bearer(page))).status).toBe(401)
    await setAdmin(true)
    const ended = await act(browser, 'DELETE', '/_hearth/admin/v1/session', bearer(page))
    expect(ended.status).toBe(200)
    expect(ended.headers.getSetCookie()[0]).toMatch(/^hearth-console=; .*Max-Age=0/)
    expect((await act(browser, 'GET', LOCK, bearer(page))).status).toBe(401)
  })
})

describe('who signs out', () => {
  it('of the console is signed out of the account page too, whose proof would open it again', async () => {
    const browser = world.browsing()
    const page = await signedIn(browser)
    await act(browser, 'DELETE', '/_hearth/admin/v1/session', bearer(page))
    expect((await browser.open(CONSOLE)).heading).toBe('Sign in')
  })

  it('of the account page leaves no console open', async () => {
    const browser = world.browsing()
    const page = await signedIn(browser)
    const cookies = [...browser.jar].map(([key, { value }]) => `${key.split(' ')[0]}=${value}`).join('; ')
    const account = await browser.open('/_hearth/account')
    const [, form = ''] =
      /action="\/_hearth\/account\/sign-out">\s*<input[^>]*name="form" value="([^"]+)"/.exec(account.text) ?? []
    expect(form).not.toBe('')
    const out = await fetch(`${world.origin}/_hearth/account/sign-out`, {
      method: 'POST',
      headers: { cookie: cookies },
      body: new URLSearchParams({ form }),
      redirect: 'manual',
    })
    expect(out.status).toBe(303)
    expect((await act(browser, 'GET', LOCK, bearer(page))).status).toBe(401)
  })
})

describe('the files', () => {
  it('of the first page come to less than 150 KB', async () => {
    const browser = world.browsing()
    const page = await signedIn(browser)
    const list = await world.server.services.admin.views.files.list()
    let sent = Buffer.byteLength(page.text)
    // All of them: the overview is the first page, and has the chart too.
    for (const name of list?.files ?? []) {
      const answer = await fetched(browser, `${CONSOLE}files/${name}`)
      expect(answer.encoding, name).toBe('gzip')
      sent += answer.bytes
    }
    expect(sent).toBeGreaterThan(20_000)
    expect(sent).toBeLessThan(150_000)
  })

  async function fetched(browser: Browsing, path: string): Promise<{ bytes: number; encoding: string | null }> {
    const cookie = [...browser.jar].map(([key, { value }]) => `${key.split(' ')[0]}=${value}`).join('; ')
    const answer = await fetch(world.origin + path, { headers: { cookie, 'accept-encoding': 'gzip' } })
    await answer.arrayBuffer()
    return {
      bytes: Number(answer.headers.get('content-length')),
      encoding: answer.headers.get('content-encoding'),
    }
  }
})
