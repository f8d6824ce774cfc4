import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BrowserContext, Page } from 'playwright-core'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { type Api, openApi } from '../support/api.ts'
import { openBrowser } from '../support/browser.ts'
import { selfSigned } from '../support/certificate.ts'
import { openFront } from './front.ts'
import { CLIENT, openTestProvider, type TestProvider } from './provider.ts'

/** A homeserver behind TLS, a provider, a client's web page, and a browser: each a site of its own, all on loopback. */
export interface SsoWorld {
  readonly server: AccountServer
  /** Where browsers reach the homeserver. */
  readonly origin: string
  readonly api: Api
  readonly provider: TestProvider
  /** The client's page, to which people are sent back. */
  readonly client: string
  /** Sees the addresses that browsers ask the homeserver for; where it gives true, the homeserver never does. */
  intercept: ((url: string) => boolean) | undefined
  /** A browser of its own, without any cookies. */
  newBrowser(): Promise<BrowserContext>
  /** The page of a browser without any cookies. It is the same page each time, as a new one costs far more: who has it, loses it to the next. */
  freshPage(): Promise<Page>
  close(): Promise<void>
}

export interface WorldOptions {
  /** Of the one provider, or of several. */
  readonly provider?: object
  readonly others?: readonly object[]
  readonly values?: object
  /** Without TLS, as when somebody tries things out. */
  readonly isPlain?: boolean
}

export async function openSsoWorld(options: WorldOptions = {}): Promise<SsoWorld> {
  const certificate = options.isPlain ? {} : { certificate: selfSigned('localhost') }
  const front = await openFront({
    host: 'localhost',
    ...certificate,
    seen({ url = '' }, response) {
      const isHeld = world.intercept?.(url) === true
      if (isHeld) response.end('held')
      return isHeld
    },
  })
  const provider = await openTestProvider(`${front.origin}/_hearth/sso/callback`)
  const client = await openClient()
  const own = {
    id: 'example',
    name: 'Example Inc.',
    issuer: provider.issuer,
    client_id: CLIENT.id,
    client_secret: CLIENT.secret,
    ...options.provider,
  }
  const { sso, ...values } = { sso: {}, ...options.values }
  const server = await startAccountServer({
    public_base_url: front.origin,
    sso: { providers: [own, ...(options.others ?? [])], ...sso },
    ...values,
  })
  front.lead(Number(new URL(server.baseUrl).port))
  const api = openApi(server.baseUrl)
  const browser = await openBrowser()
  let shared: Promise<Page> | undefined
  const world: SsoWorld = {
    server,
    intercept: undefined,
    origin: front.origin,
    api,
    provider,
    client: client.address,
    async newBrowser() {
      const context = await browser.newContext({ ignoreHTTPSErrors: true })
      const isHere = (host: string) => host === 'localhost' || host === '127.0.0.1'
      await context.route('**/*', (route) =>
        isHere(new URL(route.request().url()).hostname) ? route.continue() : route.abort(),
      )
      return context
    },
    async freshPage() {
      shared ??= world.newBrowser().then((context) => context.newPage())
      const page = await shared
      await page.context().clearCookies()
      await page.goto('about:blank')
      return page
    },
    async close() {
      await browser.close()
      await api.close()
      await server.close()
      await Promise.all([front.close(), provider.close(), client.close()])
    },
  }
  return world
}

/** A page of a client, on a site of its own. */
async function openClient() {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<title>client</title><p>The client.</p>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/app`,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  }
}

/** The address at which a sign-in begins. */
export function beginAt(world: SsoWorld, redirectUrl = world.client, prefix = '/_matrix/client/v3'): string {
  return `${world.origin}${prefix}/login/sso/redirect?${new URLSearchParams({ redirectUrl })}`
}

/** Types a name into the provider's form. */
export async function signInAtProvider(page: Page, name: string): Promise<void> {
  await page.fill('input[name=login]', name)
  await page.fill('input[name=password]', 'any')
  await page.click('button[type=submit]')
}

/** The login token that the client's page was opened with. */
export async function tokenAtClient(page: Page, world: SsoWorld): Promise<string> {
  await page.waitForURL((url) => url.href.startsWith(world.client))
  return new URL(page.url()).searchParams.get('loginToken') ?? ''
}

/** Waits for a page with this heading; says which one there is instead. */
export async function shows(page: Page, heading: string): Promise<void> {
  const found = page.getByRole('heading', { level: 1, name: heading, exact: true })
  await found.waitFor({ timeout: 30_000 }).catch(async () => {
    throw new Error(`expected "${heading}", found "${await page.locator('h1').innerText()}" at ${page.url()}`)
  })
}
