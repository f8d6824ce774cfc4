import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expandPath } from '../../src/core/paths.ts'
import { adminEndpoints } from '../../src/routes/admin/index.ts'
import { consoleDataEndpoints } from '../../src/routes/console/index.ts'
import type { Browsing } from '../support/browsing.ts'
import { act, bearer, CONSOLE, type ConsoleWorld, openConsoleWorld, signedIn } from './world.ts'

let world: ConsoleWorld
let browser: Browsing

beforeAll(async () => {
  world = await openConsoleWorld({ registration: { enabled: true } })
  await world.person('alice')
  browser = world.browsing()
  await signedIn(browser)
})
afterAll(() => world.close())

/** Every operation that administrators alone may ask for, on each of its paths. */
const OPERATIONS = [...adminEndpoints, ...consoleDataEndpoints]
  .filter(({ options }) => options.auth === 'admin')
  .flatMap(({ method, path, options }) =>
    [path, ...(options.also ?? [])].flatMap((each) => expandPath(each).map(({ path: url }) => [method, url] as const)),
  )

const concrete = (url: string) =>
  url
    .replace(/:userId\b/, '@alice:localhost')
    .replace(/:roomId\b/, '!room:localhost')
    .replace(/:eventId\b/, '$event')
    .replace(/:\w+(?=\/|$)/g, 'x')

describe('a page of another site that has the browser of an administrator send requests', () => {
  it('is refused by every operation: the cookie alone is nothing', async () => {
    expect(OPERATIONS.length).toBeGreaterThan(120)
    const taken: string[] = []
    for (const [method, url] of OPERATIONS) {
      const body = method === 'GET' || method === 'DELETE' ? undefined : {}
      const answer = await act(world, browser, method, concrete(url), {}, body)
      if (answer.status !== 401) taken.push(`${method} ${url}: ${answer.status}`)
    }
    expect(taken).toEqual([])
  })

  it('also as a form, which needs no leave of the browser', async () => {
    const { headers } = await act(world, browser, 'GET', '/_hearth/admin/v1/overview', {})
    expect(headers.get('set-cookie')).toBeNull()
    const cookie = [...browser.jar].map(([key, { value }]) => `${key.split(' ')[0]}=${value}`).join('; ')
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x']) {
      const answer = await fetch(`${world.origin}/_hearth/admin/v1/crowds/restrain`, {
        method: 'POST',
        headers: { cookie, 'content-type': type, origin: 'https://evil.example' },
        body: '{"crowd":{"name":"*"},"lock":true}',
      })
      expect(answer.status).toBe(401)
    }
  })

  it('reads no answer: no interface of the console says that others may, with cookies', async () => {
    for (const path of [CONSOLE, '/_hearth/admin/v1/overview']) {
      const answer = await fetch(world.origin + path, {
        headers: { origin: 'https://evil.example' },
        redirect: 'manual',
      })
      expect(answer.headers.get('access-control-allow-credentials'), path).toBeNull()
      expect(answer.headers.get('access-control-allow-origin'), path).not.toBe('https://evil.example')
    }
  })

  it('shows the console in no frame, whatever it answers', async () => {
    const others = [world.browsing(), browser]
    for (const each of others) {
      const page = await each.open(CONSOLE)
      expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    }
  })
})

describe('somebody who planted a cookie before', () => {
  it('does not share the session that begins then', async () => {
    const planted = 'P'.repeat(43)
    const victim = world.browsing()
    for (const name of ['hearth-console', 'hearth-account', 'hearth-browser'])
      victim.jar.set(`${name} /`, { value: planted, path: '/' })
    const page = await signedIn(victim)
    expect(victim.jar.get('hearth-console /')?.value).toMatch(/^[\w-]{43}$/)
    expect(victim.jar.get('hearth-console /')?.value).not.toBe(planted)
    const headers = { cookie: `hearth-console=${planted}`, ...bearer(page) }
    expect((await fetch(`${world.origin}/_hearth/admin/v1/overview`, { headers })).status).toBe(401)
  })
})

describe('a session', () => {
  it('of an account that administers no longer opens neither page, file nor data', async () => {
    const own = world.browsing()
    const page = await signedIn(own)
    const [, script = ''] = /<script type="module" src="([^"]+)"/.exec(page.text) ?? []
    const { db } = world.server.database
    await db.tx((tx) => tx.query('UPDATE account SET is_admin = false'))
    try {
      expect((await own.open(script)).status).toBe(401)
      expect((await own.open(CONSOLE)).text).not.toContain('hearthcs_')
      expect((await act(world, own, 'GET', '/_hearth/admin/v1/overview', bearer(page))).status).toBe(401)
    } finally {
      const boss = `(SELECT user_nid FROM matrix_user WHERE user_id = '@boss:localhost')`
      await db.tx((tx) => tx.query(`UPDATE account SET is_admin = true WHERE user_nid = ${boss}`))
    }
  })

  it('of a locked account is over at once', async () => {
    const own = world.browsing()
    const page = await signedIn(own)
    const { db } = world.server.database
    const lock = (isLocked: boolean) =>
      db.tx((tx) =>
        tx.query(
          `UPDATE account SET is_locked = $1 WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = '@boss:localhost')`,
          [isLocked],
        ),
      )
    await lock(true)
    const answer = await act(world, own, 'GET', '/_hearth/admin/v1/overview', bearer(page))
    await lock(false)
    expect(answer.status).toBe(401)
  })
})
