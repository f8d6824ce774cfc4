import { accessSync, constants } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
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

/** A headless Chromium; whoever opens it closes it. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = chromiumPath()
  if (executablePath === undefined) throw new Error('There is no Chromium here: install it, or set CHROMIUM.')
  return chromium.launch({ executablePath, headless: true, args: FLAGS })
}
