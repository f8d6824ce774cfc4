import { accessSync, constants } from 'node:fs'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Pages of the browser's own, which each window would load beside ours: a third of all its work. */
const OWN_PAGES = ['WebUIOmniboxPopup', 'WebUIOmniboxFullPopup', 'WebUIOmniboxAimPopup', 'OmniboxAimPopup']
/** What Playwright leaves out; the last of such flags counts alone. */
const LEFT_OUT = [
  ...['AimEnabled', 'AvoidCorsURLLoaderRestartOnRedirect', 'AvoidUnnecessaryBeforeUnloadCheckSync'],
  ...[
    'DestroyProfileOnBrowserClose',
    'HttpsFirstBalancedModeAutoEnable',
    'HttpsUpgrades',
    'LensOverlay',
    'MediaRouter',
  ],
  ...['NetworkTimeServiceQuerying', 'OptimizationHints', 'PaintHolding', 'PreconnectToSearch'],
  ...['ThirdPartyStoragePartitioning'],
]

/** A process for each site, and one in reserve: a third of all that is left. What pages may see of each other does not depend on it. */
const PROCESSES = ['IsolateOrigins', 'site-per-process', 'SpareRendererForSitePerProcess']

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-site-isolation-trials',
  '--renderer-process-limit=1',
  `--disable-features=${[...LEFT_OUT, ...OWN_PAGES, ...PROCESSES].join()}`,
]

/** Where a Chromium is: `$CHROMIUM`, or where distributions put it; undefined where there is none. Then a test says `describe.skipIf`. */
export function chromiumPath(): string | undefined {
  const named = process.env.CHROMIUM
  return (named === undefined || named === '' ? PLACES : [named]).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Of this process: it ends with it. */
let launched: Promise<Browser> | undefined

export interface TestBrowser {
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>
  /** Closes what was opened here. */
  close(): Promise<void>
}

/** A headless Chromium, whose process is shared with other files; whoever opens it closes it. */
export async function openBrowser(): Promise<TestBrowser> {
  launched ??= launchBrowser()
  const browser = await launched
  const contexts: BrowserContext[] = []
  return {
    async newContext(options) {
      const context = await browser.newContext(options)
      contexts.push(context)
      return context
    },
    async close() {
      await Promise.all(contexts.map((context) => context.close()))
    },
  }
}

/** One of its own, with these further flags; whoever launches it closes it. */
export function launchBrowser(flags: readonly string[] = []): Promise<Browser> {
  const executablePath = chromiumPath()
  if (executablePath === undefined) throw new Error('There is no Chromium here: install it, or set CHROMIUM.')
  return chromium.launch({ executablePath, headless: true, args: [...FLAGS, ...flags], handleSIGTERM: false })
}
