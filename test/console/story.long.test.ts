import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PASSWORD } from '../support/api.ts'
import { chromiumPath, openBrowser, type TestBrowser } from '../support/browser.ts'
import { fastestMs, limitNow } from '../support/slowness.ts'
import { END, GRAPH, lookAtConsole, MODERATION, OPERATION, ROOMS, SIGN_IN, type Step, USERS } from './story.ts'
import { CONSOLE, haveBobRefused, openTown, type Town } from './world.ts'

describe.skipIf(chromiumPath() === undefined)('an administrator with a browser, the whole story', () => {
  let town: Town
  let browser: TestBrowser
  let page: Page
  const trouble: string[] = []
  const elsewhere: string[] = []

  beforeAll(async () => {
    town = await openTown()
    browser = await openBrowser()
    // The checker is put into the page past its policy, which is held by the tests of access.
    const context = await browser.newContext({
      locale: 'en-GB',
      viewport: { width: 1280, height: 900 },
      bypassCSP: true,
    })
    page = await context.newPage()
    page.setDefaultTimeout(20_000)
    page.on('console', (message) => {
      // What a browser says of each answer that refuses; the page says it in words.
      if (!/status of 4\d\d/.test(message.text())) trouble.push(message.text())
    })
    page.on('pageerror', (error) => trouble.push(String(error)))
    page.on('request', (request) => {
      if (!request.url().startsWith(town.alpha.server.baseUrl) && !request.url().startsWith('blob:'))
        elsewhere.push(request.url())
    })
  })
  afterAll(async () => {
    await browser.close()
    await town.close()
  })

  const look = (name: string) => lookAtConsole(page, name)
  const tell = (steps: readonly Step[]) => {
    for (const [name, act] of steps) it(name, () => act({ town, page, look }))
  }

  tell(SIGN_IN)
  it('the page can be used soon after it was asked for', async () => {
    const mostMs = limitNow(300)
    const fastest = await fastestMs(mostMs, async () => {
      await page.reload()
      await page.locator('nav#menu a').first().waitFor()
      // The menu is drawn by the script, so from then on all of it works.
      return (await page.evaluate('performance.getEntriesByName("drawn")[0].startTime')) as number
    })
    console.log(`interactive after ${Math.round(fastest)} ms`)
    expect(fastest).toBeLessThan(mostMs)
  })
  tell([...USERS, ...ROOMS])
  it('meanwhile a user of another server is banned, and his server does not hear of it', () => haveBobRefused(town))
  tell([...GRAPH, ...MODERATION, ...OPERATION, ...END])

  it('in German every page is for all, too', async () => {
    const viewport = { width: 1280, height: 900 }
    const context = await browser.newContext({ locale: 'de-AT', viewport, bypassCSP: true })
    const german = await context.newPage()
    await german.goto(town.alpha.server.baseUrl + CONSOLE)
    await german.locator('input[name=username]').fill('boss')
    await german.locator('input[name=password]').fill(PASSWORD)
    await german.locator('main form button').first().click()
    const links = german.locator('nav#menu a')
    await links.first().waitFor()
    for (const link of await links.all()) {
      const name = (await link.innerText()).trim()
      const id = (await link.getAttribute('href'))?.replace('#/', '')
      await link.click()
      await german.getByRole('heading', { level: 1, name, exact: true }).waitFor()
      await german.locator('[aria-busy="true"]').waitFor({ state: 'detached' })
      await lookAtConsole(german, `german-${id || 'overview'}`)
    }
    await context.close()
  }, 120_000)

  it('the page never did what its policy forbids, and asked nobody else', () => {
    expect(trouble).toEqual([])
    expect(elsewhere).toEqual([])
  })

  it('it is a story of forty steps', () => {
    const steps = [SIGN_IN, USERS, ROOMS, GRAPH, MODERATION, OPERATION, END].flat()
    expect(steps.length).toBeGreaterThanOrEqual(40)
  })
})
