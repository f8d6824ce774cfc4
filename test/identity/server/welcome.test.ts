import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { chromiumPath, openBrowser } from '../../support/browser.ts'
import { type ChildServer, startChildServer } from '../../support/child-server.ts'

/** Where pictures of the page go; nowhere without it. */
const pictures = process.env.PICTURES

const VIEWS = [
  ['phone', 'light', 360, 'en-GB'],
  ['phone', 'dark', 360, 'de-DE'],
  ['desk', 'light', 1280, 'de-DE'],
  ['desk', 'dark', 1280, 'en-GB'],
] as const

let server: ChildServer
beforeAll(async () => {
  server = await startChildServer({
    serverName: 'identity.example.org',
    env: {
      HEARTH__ROLES: 'identity',
      HEARTH__IDENTITY__BRAND: 'Example <Chat>',
      HEARTH__IDENTITY__BASE_URL: 'https://identity.example.org',
      HEARTH__IDENTITY__TERMS__POLICIES: JSON.stringify([
        {
          id: 'privacy',
          version: '1',
          languages: [
            { language: 'en', name: 'Privacy Policy', url: 'https://example.org/privacy-en' },
            { language: 'de', name: 'Datenschutz', url: 'https://example.org/privacy-de' },
          ],
        },
      ]),
    },
  })
})
afterAll(() => server.dispose())

const open = async (language: string) => {
  const answer = await fetch(server.baseUrl, { headers: { 'accept-language': language } })
  return { headers: answer.headers, status: answer.status, html: await answer.text() }
}

test('D2: an identity service alone says at / what it is, and runs and loads nothing', async () => {
  const { status, headers, html } = await open('en')
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  expect(headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; style-src 'sha256-[^ ]+'; base-uri 'none'/,
  )
  for (const text of ['identity service', 'https://identity.example.org', 'Example &#60;Chat&#62;', 'Privacy Policy'])
    expect(html).toContain(text)
  expect(html).not.toMatch(/<script|\son\w+=|style=|homeserver/)
  const german = (await open('de-CH')).html
  for (const text of ['<html lang="de">', 'Identitätsdienst', 'https://example.org/privacy-de'])
    expect(german).toContain(text)
  expect((await fetch(`${server.baseUrl}/nothing`)).status).toBe(404)
})

describe.skipIf(chromiumPath() === undefined)('the page of an identity service alone, in a browser', () => {
  it.each(VIEWS)(
    'D2: the page of an identity service alone fits and is readable (%s, %s)',
    async (name, colorScheme, width, locale) => {
      const browser = await openBrowser()
      const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme, locale })
      const page = await context.newPage()
      const trouble: string[] = []
      page.on('console', (message) => trouble.push(message.text()))
      await page.goto(server.baseUrl)
      expect(await page.locator('h1').textContent()).toBe('Example <Chat>')
      expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
      const ground = await page.evaluate('getComputedStyle(document.body).backgroundColor')
      expect(ground).toBe(colorScheme === 'dark' ? 'rgb(25, 20, 18)' : 'rgb(251, 247, 242)')
      if (pictures !== undefined)
        await page.screenshot({ path: `${pictures}/identity-${name}-${colorScheme}.png`, fullPage: true })
      expect(trouble).toEqual([])
      await browser.close()
    },
  )
})
