import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, openBrowser } from '../support/browser.ts'
import { type ContactPeople, startContactPeople } from './contact-people.ts'

/** Where pictures of the pages go; nowhere without it. */
const pictures = process.env.PICTURES

describe.skipIf(chromiumPath() === undefined)('the pages that links in mails lead to, in a browser', () => {
  let people: ContactPeople
  let browser: Browser
  const trouble: string[] = []

  beforeAll(async () => {
    people = await startContactPeople()
    browser = await openBrowser()
    const owner = await people.account('owner')
    await people.add(owner, await people.validated('account/3pid', 'owner@example.org'))
  })
  afterAll(async () => {
    await browser.close()
    await people.close()
  })

  async function open(options: { colorScheme?: 'dark' | 'light'; locale?: string } = {}): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 390, height: 780 }, locale: 'en-GB', ...options })
    const page = await context.newPage()
    page.on('console', (message) => trouble.push(message.text()))
    const url = people.link()
    await page.goto(people.server.baseUrl + url.pathname + url.search)
    return page
  }

  const picture = async (page: Page, name: string) => {
    if (pictures !== undefined) await page.screenshot({ path: `${pictures}/${name}.png` })
  }
  const isProven = (sid: string, clientSecret: string) =>
    people.server.services.contactSessions.findValidated({ sid, clientSecret }).then(
      () => true,
      () => false,
    )

  it.each([
    ['en-GB', 'light', 'Set a new password?', 'Yes, it was me', 'Thank you, that worked'],
    ['de-DE', 'dark', 'Neues Passwort setzen?', 'Ja, das war ich', 'Danke, das hat geklappt'],
  ] as const)('a new password is confirmed by a click (%s, %s)', async (locale, colorScheme, asks, button, thanks) => {
    const client_secret = `browser.${locale}`
    const next_link = 'https://app.example.org/'
    const { body } = await people.requestEmail('account/password', 'owner@example.org', { client_secret, next_link })
    const page = await open({ locale, colorScheme })
    expect(await page.locator('h1').textContent()).toBe(asks)
    await picture(page, `confirm-${locale}`)
    expect(await isProven(body.sid, client_secret)).toBe(false)
    await page.getByRole('button', { name: button }).click()
    await page.waitForURL(/\/confirm$/)
    expect(await page.locator('h1').textContent()).toBe(thanks)
    expect(await page.locator('section a').getAttribute('href')).toBe(`${next_link}?sid=${body.sid}`)
    await picture(page, `confirmed-${locale}`)
    expect(await isProven(body.sid, client_secret)).toBe(true)
    await page.context().close()
  })

  it('an address for an account is confirmed by the link itself', async () => {
    const { body } = await people.requestEmail('register', 'new@example.org', { client_secret: 'browser.register' })
    const page = await open()
    expect(await page.locator('h1').textContent()).toBe('Thank you, that worked')
    expect(await isProven(body.sid, 'browser.register')).toBe(true)
    await page.context().close()
  })

  it('and the browser had nothing to complain about', () => {
    expect(trouble).toEqual([])
  })
})
