import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, openBrowser, type TestBrowser } from '../support/browser.ts'
import { type ContactPeople, startContactPeople } from './contact-people.ts'

/** Where pictures of the pages go; nowhere without it. */
const pictures = process.env.PICTURES

describe.skipIf(chromiumPath() === undefined)('the pages that links in mails lead to, in a browser', () => {
  let people: ContactPeople
  let browser: TestBrowser
  const trouble: string[] = []

  beforeAll(async () => {
    people = await startContactPeople({ registration: { email: 'optional', msisdn: 'optional' } })
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

  /** A new page of the size of a phone, with a stage of an authentication that was begun. */
  async function fallback(stage: string, colorScheme: 'dark' | 'light'): Promise<{ page: Page; session: string }> {
    const first = await people.api.request('POST', '/register', { body: {} })
    const { session } = first.body
    const context = await browser.newContext({ viewport: { width: 360, height: 740 }, colorScheme })
    const page = await context.newPage()
    page.on('console', (message) => {
      if (!/status of 40[01]/.test(message.text())) trouble.push(message.text())
    })
    await page.goto(`${people.server.baseUrl}/_matrix/client/v3/auth/${stage}/fallback/web?session=${session}`)
    return { page, session }
  }
  const fits = (page: Page) => page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')
  const completed = async (session: string) =>
    (await people.server.services.interactiveAuth.look(session))?.completed ?? []

  it.each(['light', 'dark'] as const)(
    'm.login.email.identity is completed without a client that can (%s)',
    async (colours) => {
      const stage = 'm.login.email.identity'
      const { page, session } = await fallback(stage, colours)
      const shot = (step: string) => picture(page, `fallback-email-${step}-${colours}`)
      await page.getByLabel('Email address').fill('owner@example.org')
      await page.getByRole('button', { name: 'Send the link' }).click()
      await page.getByRole('alert').waitFor()
      expect(await page.getByRole('alert').textContent()).toBe('This address belongs to an account already.')
      await shot('taken')
      const email = `fallback-${colours}-with-a-rather-long-name@sub.example.org`
      await page.getByLabel('Email address').fill(email)
      await page.getByRole('button', { name: 'Send the link' }).click()
      await page.getByText('is on its way to').waitFor()
      await shot('sent')
      expect(await fits(page)).toBe(true)
      await page.getByRole('button', { name: 'I have confirmed it' }).click()
      await page.getByRole('alert').waitFor()
      expect(await completed(session)).toEqual([])
      await shot('too-soon')
      await people.follow()
      await page.getByRole('button', { name: 'I have confirmed it' }).click()
      await page.getByRole('heading', { name: 'Thank you' }).waitFor()
      expect(await completed(session)).toEqual([stage])
      await page.context().close()
    },
  )

  it.each(['light', 'dark'] as const)('m.login.msisdn is completed without a client that can (%s)', async (colours) => {
    const stage = 'm.login.msisdn'
    const { page, session } = await fallback(stage, colours)
    const shot = (step: string) => picture(page, `fallback-phone-${step}-${colours}`)
    await page.getByLabel('Phone number').fill('07400 123456')
    await page.getByRole('button', { name: 'Send the code' }).click()
    await page.getByRole('alert').waitFor()
    await shot('no-country')
    await page.getByLabel('Phone number').fill('+44 7400 123456')
    await page.getByRole('button', { name: 'Send the code' }).click()
    await page.getByLabel('Code').fill('000000')
    await shot('sent')
    expect(await fits(page)).toBe(true)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('alert').waitFor()
    await shot('wrong')
    await page.getByLabel('Code').fill(people.code())
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Thank you' }).waitFor()
    expect(await completed(session)).toContain(stage)
    await page.context().close()
  })

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
