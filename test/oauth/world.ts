import { createHash, randomBytes } from 'node:crypto'
import type { Services } from '../../src/domain/services.ts'
import type { Database } from '../../src/store/db/db.ts'
import { openFront } from '../sso/front.ts'
import { startAccountServer } from '../support/account-server.ts'
import { type Account, type Api, type Json, openApi, register } from '../support/api.ts'
import { Browsing, type Page } from '../support/browsing.ts'
import { startServer } from '../support/server.ts'

/** A homeserver that clients sign in to by OAuth, behind a proxy on loopback. */
export interface OauthWorld {
  readonly db: Database
  readonly services: Services
  /** Moves the server's clock. */
  advance(ms: number): void
  /** What operators are told of a whole server. */
  metrics(): Promise<string>
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

type Server = Pick<OauthWorld, 'db' | 'services' | 'advance' | 'metrics' | 'close'> & { readonly baseUrl: string }

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
    metrics: server.metrics,
    close: server.close,
  }
}

/** A server without rooms. */
async function accountServer(values: object): Promise<Server> {
  const server = await startAccountServer(values)
  return {
    baseUrl: server.baseUrl,
    db: server.db,
    services: server.services,
    advance: server.advance,
    metrics: async () => '',
    close: server.close,
  }
}

export async function openOauthWorld(values: object = {}, isWhole?: 'whole'): Promise<OauthWorld> {
  const front = await openFront({ host: 'localhost' })
  const start = isWhole ? wholeServer : accountServer
  const server = await start({ public_base_url: front.origin, ...values })
  front.lead(Number(new URL(server.baseUrl).port))
  const api = openApi(server.baseUrl)
  const metadata = await api.call('GET', '/_matrix/client/v1/auth_metadata')
  return {
    db: server.db,
    services: server.services,
    advance: server.advance,
    metrics: server.metrics,
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
