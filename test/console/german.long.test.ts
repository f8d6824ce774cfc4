import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { german } from '../../src/console/german.ts'
import { PASSWORD } from '../support/api.ts'
import { chromiumPath, openBrowser, type TestBrowser } from '../support/browser.ts'
import { PROJECT_ROOT } from '../support/project.ts'
import { CONSOLE, openTown, type Town } from './world.ts'

const SOURCES = join(PROJECT_ROOT, 'src/console')
const sources = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name) && !name.startsWith('german'))
  .map((name) => readFileSync(join(SOURCES, name), 'utf8'))
  .join('\n')

const holesIn = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([hole]) => hole).sort()

describe('the German texts', () => {
  it.each(Object.entries(german))('%j has the same holes, and is used', (english, text) => {
    expect(holesIn(text)).toEqual(holesIn(english))
    expect(sources.includes(`'${english}'`) || sources.includes(`${english}:`), english).toBe(true)
  })
})

describe.skipIf(chromiumPath() === undefined)('the console in the language of the browser', () => {
  let town: Town
  let browser: TestBrowser
  let context: BrowserContext
  let page: Page

  beforeAll(async () => {
    town = await openTown()
    browser = await openBrowser()
    context = await browser.newContext({ locale: 'de-AT', viewport: { width: 1280, height: 900 } })
    page = await context.newPage()
    await page.goto(town.alpha.server.baseUrl + CONSOLE)
    await page.locator('input[name=username]').fill('boss')
    await page.locator('input[name=password]').fill(PASSWORD)
    await page.locator('main form button').first().click()
  })
  afterAll(async () => {
    await browser.close()
    await town.close()
  })

  const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  const languageOf = () => page.evaluate('document.documentElement.lang')

  it('is German for who reads German', async () => {
    await heading('Überblick')
    expect(await languageOf()).toBe('de')
    await page.getByText('Alle anderen Server haben alles erhalten.').waitFor()
  })

  it('in all its pages: no English word of a menu or heading is left', async () => {
    const names = await page.locator('nav#menu a').allInnerTexts()
    expect(names).toHaveLength(14)
    for (const name of names) {
      await page.locator('nav#menu').getByRole('link', { name, exact: true }).click()
      await heading(name)
    }
  })

  it('says that the options are described in English, and marks what is', async () => {
    await page.locator('nav#menu').getByRole('link', { name: 'Konfiguration', exact: true }).click()
    await page.getByText('Was die Optionen bedeuten, ist auf Englisch beschrieben.').waitFor()
    await page.locator('td [lang="en"]').first().waitFor()
    expect(await page.locator('tbody tr:not(:has([lang="en"]))').count()).toBe(0)
  })

  it('is English after that was chosen, and stays so', async () => {
    await page.getByLabel('Sprache').selectOption('en')
    await page.getByLabel('Language').waitFor()
    expect(await languageOf()).toBe('en')
    await page.reload()
    await page.getByLabel('Language').waitFor()
    const next = await context.newPage()
    await next.goto(town.alpha.server.baseUrl + CONSOLE)
    await next.getByLabel('Language').waitFor()
    await next.getByLabel('Language').selectOption('de')
    await next.getByLabel('Sprache').waitFor()
    await next.close()
  })
})
