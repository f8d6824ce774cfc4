import { createHash, randomBytes } from 'node:crypto'
import type { Services } from '../../src/domain/services.ts'
import type { Database } from '../../src/store/db/db.ts'
import { openFront } from '../sso/front.ts'
import { startAccountServer } from '../support/account-server.ts'
import { type Account, type Api, type Json, openApi, PASSWORD, register } from '../support/api.ts'
import { startServer } from '../support/server.ts'

/** A homeserver that clients sign in to by OAuth, behind a proxy on loopback. */
export interface OauthWorld {
  readonly db: Database
  readonly services: Services
  /** Moves the server's clock. */
  advance(ms: number): void
  readonly origin: string
  /** The server itself, past the proxy. */
  readonly baseUrl: string
  readonly api: Api
  readonly metadata: Json
  account(name: string): Promise<Account>
  /** Registers a client and gives its id. */
  client(metadata?: object): Promise<string>
  /** A browser without any cookies. */
  browser(): Browsing
  /** Sends a form to an endpoint, as an app does. */
  form(endpoint: string, fields: Record<string, string> | [string, string][]): Promise<AppAnswer>
  close(): Promise<void>
}

export interface AppAnswer {
  readonly status: number
  readonly body: Json
  readonly headers: Headers
}

export const REDIRECT = 'https://app.example.com/callback'
export const CLIENT = {
  client_name: 'An app',
  client_uri: 'https://app.example.com/',
  redirect_uris: [REDIRECT],
  grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
}

type Server = Pick<OauthWorld, 'db' | 'services' | 'advance' | 'close'> & { readonly baseUrl: string }

/** A server with rooms and keys. */
async function wholeServer(values: object): Promise<Server> {
  let ahead = 0
  const server = await startServer(values, { clock: { now: () => Date.now() + ahead } })
  return {
    baseUrl: server.baseUrl,
    db: server.database.db,
    services: server.services,
    advance(ms) {
      ahead += ms
    },
    close: server.close,
  }
}

export async function openOauthWorld(values: object = {}, isWhole?: 'whole'): Promise<OauthWorld> {
  const front = await openFront({ host: 'localhost' })
  const start = isWhole ? wholeServer : startAccountServer
  const server = await start({ public_base_url: front.origin, ...values })
  front.lead(Number(new URL(server.baseUrl).port))
  const api = openApi(server.baseUrl)
  const metadata = await api.call('GET', '/_matrix/client/v1/auth_metadata')
  return {
    db: server.db,
    services: server.services,
    advance: server.advance,
    origin: front.origin,
    baseUrl: server.baseUrl,
    api,
    metadata,
    account: (name) => register(api, name),
    async client(changes = {}) {
      const answer = await api.request('POST', '/_hearth/oauth/register', { body: { ...CLIENT, ...changes } })
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
      return answer.body.client_id
    },
    browser: () => new Browsing(front.origin),
    async form(endpoint, fields) {
      const answer = await fetch(endpoint, { method: 'POST', body: new URLSearchParams(fields) })
      const text = await answer.text()
      return { status: answer.status, headers: answer.headers, body: text.startsWith('{') ? JSON.parse(text) : text }
    },
    async close() {
      await api.close()
      await front.close()
      await server.close()
    },
  }
}

export interface Page {
  readonly status: number
  /** Where it is, after redirects within the server. */
  readonly url: URL
  readonly text: string
  readonly headers: Headers
  /** Where it leads outside of the server. */
  readonly left: URL | undefined
  readonly heading: string
}

/** A browser without scripts: it keeps cookies, follows redirects and sends forms. */
export class Browsing {
  readonly jar = new Map<string, { value: string; path: string }>()
  readonly #origin: string

  constructor(origin: string) {
    this.#origin = origin
  }

  #cookiesFor(url: URL): string {
    const fitting = [...this.jar].filter(([, { path }]) => url.pathname === path || url.pathname.startsWith(path))
    return fitting.map(([key, { value }]) => `${key.split(' ')[0]}=${value}`).join('; ')
  }

  #keep(answer: Response): void {
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      const path = /; *path=([^;]+)/i.exec(line)?.[1] ?? '/'
      const isOver = /expires=Thu, 01 Jan 1970|max-age=0/i.test(line)
      if (isOver) this.jar.delete(`${name} ${path}`)
      else this.jar.set(`${name} ${path}`, { value, path })
    }
  }

  async open(
    address: string | URL,
    form?: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<Page> {
    let url = new URL(address, this.#origin)
    let body = form === undefined ? undefined : new URLSearchParams(form)
    for (let step = 0; step < 10; step += 1) {
      const cookie = this.#cookiesFor(url)
      const answer = await fetch(url, {
        redirect: 'manual',
        headers: { ...headers, cookie, accept: 'text/html' },
        ...(body && { method: 'POST', body }),
      })
      this.#keep(answer)
      const location = answer.headers.get('location')
      const text = await answer.text()
      const next = location === null ? undefined : new URL(location, url)
      if (next === undefined || next.origin !== this.#origin) {
        const heading = /<h1>([^<]*)/.exec(text)?.[1] ?? ''
        return { status: answer.status, url, text, headers: answer.headers, left: next, heading }
      }
      body = undefined
      url = next
    }
    throw new Error(`no end of redirects at ${url}`)
  }

  /** Sends the form of a page: its hidden fields, and these. */
  submit(page: Page, fields: Record<string, string> = {}, headers: Record<string, string> = {}): Promise<Page> {
    const action = /<form method="post"(?: action="([^"]*)")?/.exec(page.text)?.[1] ?? ''
    return this.open(new URL(unescaped(action), page.url), { ...hiddenOf(page), ...fields }, headers)
  }

  /** Signs in on the page that asks for it. */
  signIn(page: Page, username: string, password = PASSWORD): Promise<Page> {
    return this.submit(page, { username, password })
  }
}

const unescaped = (text: string) => text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))

export function hiddenOf({ text }: Pick<Page, 'text'>): Record<string, string> {
  const first = /<form[\s\S]*?<\/form>/.exec(text)?.[0] ?? ''
  const inputs = [...first.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
  return Object.fromEntries(inputs.map(([, name, value]) => [name, unescaped(value ?? '')]))
}

export interface Request {
  readonly parameters: Record<string, string>
  readonly verifier: string
}

export const scopeOf = (device: string) => `urn:matrix:client:api:* urn:matrix:client:device:${device}`

/** A client's request, as it should be; a change of undefined leaves a parameter out. */
export function requestOf(clientId: string, changes: Record<string, string | undefined> = {}): Request {
  const verifier = randomBytes(48).toString('base64url')
  const all = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: REDIRECT,
    scope: scopeOf('DEVICE0001'),
    state: randomBytes(8).toString('hex'),
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...changes,
  }
  const parameters = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
  return { parameters: parameters as Record<string, string>, verifier }
}

export function addressOf(world: OauthWorld, { parameters }: Request): string {
  return `${world.metadata.authorization_endpoint}?${new URLSearchParams(parameters)}`
}

/** What came back to a client. */
export function answerIn(page: Page): URLSearchParams {
  if (page.left === undefined) throw new Error(`the browser stays at "${page.heading}" (${page.status})`)
  return page.left.hash === '' ? page.left.searchParams : new URLSearchParams(page.left.hash.slice(1))
}

/** Signs a person in and allows what a client asks for; gives the page after that. */
export async function allow(world: OauthWorld, request: Request, username: string, browser = world.browser()) {
  let page = await browser.open(addressOf(world, request))
  if (page.url.pathname === '/_hearth/account/sign-in') page = await browser.signIn(page, username)
  return browser.submit(page, { decision: 'allow' })
}

/** The code that a client gets. */
export async function codeFor(world: OauthWorld, request: Request, username: string): Promise<string> {
  return answerIn(await allow(world, request, username)).get('code') ?? ''
}

export function exchange(
  world: OauthWorld,
  request: Request,
  code: string,
  changes: Record<string, string | undefined> = {},
): Promise<AppAnswer> {
  const all = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: request.parameters.redirect_uri,
    client_id: request.parameters.client_id,
    code_verifier: request.verifier,
    ...changes,
  }
  const fields = Object.entries(all).filter((field): field is [string, string] => field[1] !== undefined)
  return world.form(world.metadata.token_endpoint, fields)
}

/** A session of a client, from the beginning. */
export async function session(world: OauthWorld, clientId: string, username: string, device = 'DEVICE0001') {
  const request = requestOf(clientId, { scope: scopeOf(device) })
  const code = await codeFor(world, request, username)
  const answer = await exchange(world, request, code)
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return answer.body
}

export function refresh(world: OauthWorld, token: string, clientId: string): Promise<AppAnswer> {
  return world.form(world.metadata.token_endpoint, {
    grant_type: 'refresh_token',
    refresh_token: token,
    client_id: clientId,
  })
}

export const whoami = (world: OauthWorld, token: string) => world.api.request('GET', '/account/whoami', { token })
