import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page, Response } from 'playwright-core'
import { PASSWORD } from '../../test/support/api.ts'
import { openBrowser } from '../../test/support/browser.ts'
import { startChildServer } from '../../test/support/child-server.ts'
import { waitUntil } from '../../test/support/wait.ts'
import { Album } from '../web-client/people.ts'
import { type Asked, serveSite } from '../web-client/servers.ts'
import { ADMIN_NAME, type Office, SHARED_SECRET, settle } from './admin-client-office.ts'
import { pagesOf } from './admin-client-pages.ts'

/** A page that was opened, and what went wrong on it. */
interface Visit {
  readonly place: string
  readonly requests: number
  readonly refused: readonly Asked[]
  readonly complaints: readonly string[]
}

const LOOPBACK = ['127.0.0.1', 'localhost']
const QUIET_MS = 1_000
const WAITING = '[role=progressbar], .MuiSkeleton-root, .RaLoading-root'
const CONTENT = '.RaLayout-content'
const SHOWN_MS = 20_000

/**
 * Has an unmodified Ketesa, built outside of this folder, open all its pages against a Hearth with data, and gives how many pages had a
 * request that was answered with 404, 405 or 5xx, or complained. `folder`: its built site.
 */
export async function adminClientInterop({
  folder,
  pictures,
}: {
  readonly folder: string
  readonly pictures: string | undefined
}): Promise<number> {
  await readFile(join(folder, 'index.html')).catch(() => {
    throw new Error(`there is no index.html in ${folder}: build the client first`)
  })
  const env = { HEARTH__RATE_LIMITS__ENABLED: 'false', HEARTH__REGISTRATION__SHARED_SECRET: SHARED_SECRET }
  const server = await startChildServer({ env, makesCluster: true })
  const config = JSON.stringify({ restrictBaseUrl: server.baseUrl })
  const site = await serveSite(folder, { '/config.json': config })
  const browser = await openBrowser()
  try {
    const office = await settle(server)
    const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1400, height: 1000 } })
    await context.route(
      ({ hostname }) => !LOOPBACK.includes(hostname),
      (route) => route.abort(),
    )
    const walk = new Walk(await context.newPage(), server.baseUrl, pictures)
    await walk.signIn(site.address)
    const visits: Visit[] = []
    for (const [place, shows] of pagesOf(office)) {
      const visit = await walk.visit(`${site.address}/#${place}`, nameOf(place, office), shows)
      visits.push(visit)
      report(visit)
    }
    return conclude(visits, walk.asked)
  } finally {
    await browser.close()
    await site.close()
    await server.dispose()
  }
}

class Walk {
  readonly #page: Page
  readonly asked: Asked[] = []
  readonly #album: Album | undefined
  readonly #complaints: string[] = []
  #pending = 0
  #changedAt = performance.now()

  constructor(page: Page, homeserver: string, pictures: string | undefined) {
    this.#page = page
    this.#album = pictures === undefined ? undefined : new Album(pictures)
    const changed = (by: number) => {
      this.#pending += by
      this.#changedAt = performance.now()
    }
    page.on('request', () => changed(1))
    page.on('requestfinished', () => changed(-1))
    page.on('requestfailed', () => changed(-1))
    page.on('response', (response) => {
      if (response.url().startsWith(homeserver)) void this.#note(response)
    })
    page.on('pageerror', (error) => this.#complaints.push(error.message))
  }

  /** A question of the browser itself, whether the page may ask, is none of the page's. */
  async #note(response: Response): Promise<void> {
    const method = response.request().method()
    if (method === 'OPTIONS') return
    const { pathname, search } = new URL(response.url())
    const status = response.status()
    const answer = status < 400 ? {} : ((await response.json().catch(() => ({}))) as { errcode?: string })
    this.asked.push({ method, path: pathname + search, status, errcode: answer.errcode })
  }

  async signIn(address: string): Promise<void> {
    await this.#page.goto(address)
    await this.#page.locator('input[name=username]').fill(ADMIN_NAME)
    await this.#page.locator('input[name=password]').fill(PASSWORD)
    await this.#page.locator('button[type=submit]').click()
    await this.#page.locator(CONTENT).first().waitFor()
    await this.#settled()
  }

  async visit(address: string, place: string, shows: string): Promise<Visit> {
    const before = this.asked.length
    this.#complaints.length = 0
    // From the beginning, so that nothing is known from the page before.
    await this.#page.goto('about:blank')
    await this.#page.goto(address)
    const text = this.#page
      .locator(CONTENT)
      .getByText(shows)
      .or(this.#page.locator(CONTENT).locator(`input[value*="${shows}"]`))
    await text
      .filter({ visible: true })
      .first()
      .waitFor({ timeout: SHOWN_MS })
      .catch(() => this.#complaints.push(`"${shows}" is not there`))
    await this.#settled()
    await this.#album?.take(this.#page, place)
    const boxes = await this.#page
      .locator('.MuiAlert-colorError, .MuiSnackbarContent-root, .RaError-root')
      .allInnerTexts()
    const asked = this.asked.slice(before)
    return {
      place,
      requests: asked.length,
      refused: asked.filter(isRefusal),
      complaints: [...this.#complaints, ...boxes],
    }
  }

  /** Nothing is on its way, and the page shows nothing that waits. */
  async #settled(): Promise<void> {
    await waitUntil('the page', async () => {
      if (this.#pending > 0 || performance.now() - this.#changedAt < QUIET_MS) return false
      return (await this.#page.locator(WAITING).count()) === 0
    })
  }
}

const isRefusal = ({ status }: Asked): boolean => status === 404 || status === 405 || status >= 500 || status === 400

const nameOf = (place: string, { roomId, spaceId, reporter }: Office): string =>
  decodeURIComponent(place).replace(roomId, 'room').replace(spaceId, 'space').replace(reporter, 'user')

function report({ place, requests, refused, complaints }: Visit): void {
  const isGood = refused.length === 0 && complaints.length === 0
  console.log(`${isGood ? '✓' : '✗'} ${place} (${requests} requests)`)
  for (const { method, path, status, errcode } of refused)
    console.log(`    ${method} ${path}: ${status} ${errcode ?? ''}`)
  for (const complaint of complaints) console.log(`    says: ${complaint.slice(0, 300)}`)
}

function conclude(visits: readonly Visit[], asked: readonly Asked[]): number {
  const bad = visits.filter(({ refused, complaints }) => refused.length + complaints.length > 0)
  const operations = new Set(asked.map(({ method, path }) => `${method} ${path.replace(/\?.*/, '')}`))
  console.log(
    `${visits.length - bad.length} of ${visits.length} pages without a refusal, ${asked.length} requests to ${operations.size} paths`,
  )
  return bad.length
}
