import { buildConsole } from '../../scripts/build-console.mjs'
import { type Office, openOffice } from '../admin/office.ts'
import { Browsing, type Page } from '../oauth/world.ts'

export const CONSOLE = '/_hearth/admin/'

export interface ConsoleWorld extends Office {
  readonly origin: string
  /** A browser without any cookies. */
  browsing(): Browsing
}

/** A server with an administrator `boss`, and the console as it is built from this tree. */
export async function openConsoleWorld(overrides: Parameters<typeof openOffice>[0] = {}): Promise<ConsoleWorld> {
  await buildConsole()
  const office = await openOffice(overrides)
  const origin = office.server.baseUrl
  return { ...office, origin, browsing: () => new Browsing(origin) }
}

/** Opens the console as the administrator. */
export async function signedIn(browser: Browsing): Promise<Page> {
  return browser.signIn(await browser.open(CONSOLE), 'boss')
}

/** What the server wrote into the page for its script. */
export function factsIn({ text }: Pick<Page, 'text'>): { readonly token: string; readonly user_id: string } {
  const written = /<meta name="hearth" content="([^"]*)">/.exec(text)?.[1] ?? ''
  return JSON.parse(written.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code))))
}
