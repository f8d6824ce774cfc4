import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, openBrowser, type TestBrowser } from '../support/browser.ts'
import { MODERATION, ROOMS, SIGN_IN, USERS } from './story.ts'
import { openTown, type Town } from './world.ts'

/** The beginning of each part; `story.long.test.ts` tells all of it. */
describe.skipIf(chromiumPath() === undefined)('an administrator with a browser', () => {
  let town: Town
  let browser: TestBrowser
  let page: Page
  const trouble: string[] = []

  beforeAll(async () => {
    town = await openTown()
    browser = await openBrowser()
    const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 900 } })
    page = await context.newPage()
    page.on('console', (message) => trouble.push(message.text()))
    page.on('pageerror', (error) => trouble.push(String(error)))
  })
  afterAll(async () => {
    await browser.close()
    await town.close()
  })

  for (const [name, act] of [...SIGN_IN, ...USERS.slice(0, 4), ...ROOMS.slice(0, 2), ...MODERATION.slice(0, 1)]) {
    it(name, () => act({ town, page, look: async () => {} }))
  }

  it('and the page, under its policy, says nothing to the developer', () => {
    expect(trouble).toEqual([])
  })
})
