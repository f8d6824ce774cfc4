import type { BrowserContext, Page } from 'playwright-core'
import { expect } from 'vitest'
import { PAGES, type PageName } from '../../../src/domain/page-rules.ts'
import type { Services } from '../../../src/domain/services.ts'
import type { TestBrowser } from '../../support/browser.ts'
import { graveProblems, lookAt, type Shape } from '../../support/looks.ts'

export const LANGUAGES = ['en', 'de'] as const
export type Language = (typeof LANGUAGES)[number]

const LOCALES: Readonly<Record<Language, string>> = { en: 'en-GB', de: 'de-AT' }

const SHAPES: readonly Shape[] = [
  { name: 'light', width: 1000, colorScheme: 'light' },
  { name: 'dark', width: 1000, colorScheme: 'dark' },
  { name: 'phone', width: 360, colorScheme: 'light' },
  { name: 'phone-dark', width: 360, colorScheme: 'dark' },
]

/** Fields without a label, and what takes the focus without showing it. */
const HIDDEN_FROM_PEOPLE = `(() => {
  const unnamed = [...document.querySelectorAll('input:not([type=hidden],[hidden])')].filter(({ labels }) => labels.length === 0)
  const unseen = [...document.querySelectorAll('a[href], button, input:not([type=hidden],[hidden])')].filter((each) => {
    each.focus()
    return document.activeElement === each && getComputedStyle(each).outlineStyle === 'none'
  })
  return [...unnamed, ...unseen].map(({ outerHTML }) => outerHTML)
})()`

/** What all walks together have looked at. */
export interface Album {
  /** Notes which page a server shows. */
  watch(services: Pick<Services, 'pages'>): void
  /** The pages that nobody has looked at in a language, as `de welcome.page`. */
  unseen(): string[]
  look(page: Page, language: Language, name: string): Promise<void>
}

export function openAlbum(): Album {
  const seen = new Set<string>()
  let shown: PageName | undefined

  return {
    watch(services) {
      const { render } = services.pages
      const watched: { render: typeof render } = services.pages
      watched.render = (name, values, look) => {
        shown = name
        return render(name, values, look)
      }
    },
    unseen: () =>
      Object.keys(PAGES)
        .flatMap((name) => LANGUAGES.map((language) => `${language} ${name}`))
        .filter((each) => !seen.has(each)),
    async look(page, language, name) {
      if (shown !== undefined) seen.add(`${language} ${shown}`)
      expect(await page.evaluate('document.documentElement.lang'), name).toBe(language)
      await lookAt(page, `${name}-${language}`, SHAPES, async (which) =>
        expect(await graveProblems(page), which).toEqual([]),
      )
      await page.keyboard.press('Tab')
      expect(await page.evaluate(HIDDEN_FROM_PEOPLE), name).toEqual([])
    },
  }
}

/** One person with one browser, who reads one language. The words of pages are nothing that walks go by. */
export interface Tour {
  readonly language: Language
  readonly page: Page
  /** Looks at the page that is open, in all its shapes. */
  look(name: string): Promise<void>
  open(address: string): Promise<void>
  /** Fills in fields by their names, and sends the form by this button. */
  send(fields?: Readonly<Record<string, string>>, button?: string): Promise<void>
  /** Follows a link or presses a button that leads to another page. */
  press(selector: string): Promise<void>
  /** Another page of the same browser. */
  aside(): Promise<Tour>
  close(): Promise<void>
}

export async function beginTour(browser: TestBrowser, album: Album, language: Language): Promise<Tour> {
  // The checker is put into pages past their policies, which other tests hold them to.
  const context = await browser.newContext({ locale: LOCALES[language], ignoreHTTPSErrors: true, bypassCSP: true })
  await keepInside(context)
  return tourOf(await context.newPage(), album, language)
}

function tourOf(page: Page, album: Album, language: Language): Tour {
  const context = page.context()
  page.setDefaultTimeout(30_000)

  async function press(selector: string): Promise<void> {
    const loaded = page.waitForEvent('load')
    await page.locator(selector).first().click()
    await loaded
  }

  return {
    language,
    page,
    look: (name) => album.look(page, language, name),
    open: async (address) => void (await page.goto(address)),
    async send(fields = {}, button = 'main form button') {
      for (const [name, value] of Object.entries(fields)) await page.fill(`main [name=${name}]`, value)
      await press(button)
    },
    press,
    async aside() {
      const other = await context.newPage()
      return { ...tourOf(other, album, language), close: () => other.close() }
    },
    close: () => context.close(),
  }
}

/** Apps are pages of their own; nothing else is asked outside of this machine. */
async function keepInside(context: BrowserContext): Promise<void> {
  await context.route('**/*', (route) => {
    const { hostname } = new URL(route.request().url())
    if (hostname === 'localhost' || hostname === '127.0.0.1') return route.continue()
    if (hostname !== 'app.example.com') return route.abort()
    return route.fulfill({ contentType: 'text/html', body: '<title>app</title><h1>The app</h1>' })
  })
}
