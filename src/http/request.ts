import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { JsonOffence, ReadJson } from '../core/json.ts'
import { readExact } from '../core/large-integers.ts'
import type { Dialect } from '../core/paths.ts'
import type { UiaProof } from '../domain/accounts/interactive-auth.ts'
import type { Cancellation } from '../domain/cancellation.ts'
import type { Claim } from '../domain/federation/signed-requests.ts'
import { addressOf } from './address.ts'
import type { BodyIntake } from './body-intake.ts'
import type { Caller } from './caller.ts'
import { type AddressReader, NODE_PEER } from './client-address.ts'
import { cookieIn } from './cookie.ts'
import { isByProxy, LOCAL_CLIENT } from './nodes/local-client.ts'

/** A request that has come, over HTTP or from another node: as much of it as its operation looks at. */
export interface Arrived {
  readonly id: string
  readonly method: string
  /** Path and query as they came. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly query: unknown
  readonly params: unknown
  /** Bytes, where there is one. */
  readonly body: unknown
  /** Whether the body took so long that the token in the headers must be checked again. */
  readonly isLate: boolean
  readonly raw: Pick<IncomingMessage, 'url' | 'rawHeaders'> & {
    readonly socket: { readonly remoteAddress?: string | undefined }
  }
  caller: Caller | undefined
  claim: Claim | undefined
}

/** The answer before it is made. */
export interface Answering {
  header(name: string, value: string | number): unknown
  readonly raw: Departing
}

/** Whom an answer goes to, and who may leave before. */
export interface Departing {
  readonly closed: boolean
  readonly writableFinished: boolean
  on(event: 'close', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}

/** Facts of the HTTP request; each is read on first use. */
export interface Wire {
  /** The client's address, seen through trusted proxies only. */
  readonly ip: string
  /** Whether the request says that it came through a proxy. */
  readonly isForwarded: boolean
  readonly userAgent: string | undefined
  /** The `Authorization` header as it came. */
  readonly authorization: string | undefined
  /** Whether an access token was sent, in header or query. */
  readonly hasToken: boolean
  readonly acceptLanguage: string | undefined
  /** `Sec-Fetch-Site`: which site made the browser send the request: `same-origin`, `same-site`, `cross-site` or `none`. */
  readonly fetchSite: string | undefined
  /** A header by its name in lower case; the first one if it repeats. */
  header(name: string): string | undefined
  /** The cookie of this name. */
  cookie(name: string): string | undefined
  /** The target of the request as it came: path and query. */
  readonly uri: string
  readonly id: string
  readonly log: Logger
  /** Aborted when the client goes away before its answer. */
  readonly signal: Cancellation
  /** Whether the request used a path of release r0 or of the `_proto` dialect. */
  readonly isOldPath: boolean
  /** The operation's path without dialect and release, its parameters percent-encoded: `C/rooms/!r%3Ahs/send/m.text/1`. */
  readonly path: string
}

/** A request that has been parsed, authenticated and validated. */
export interface EndpointRequest<Params = unknown, Query = unknown, Body = unknown, By = Caller | undefined>
  extends Wire {
  readonly dialect: Dialect
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The first thing in the body that canonical JSON forbids. */
  readonly bodyOffence: JsonOffence | undefined
  /** The body with exact integers of any size, for content of events. */
  readonly exactBody: Body
  /** The body as it came. */
  readonly bodyText: string
  /** The body as it comes, of endpoints that are `streamed`. */
  readonly stream: AsyncIterable<Buffer>
  readonly bodyBytes: number
  readonly requester: By
  /** The result of user-interactive authentication; undefined if this call needed none. */
  readonly uia: UiaProof | undefined
}

/** What the requests of one mounted path share. */
export interface RouteFacts {
  readonly dialect: Dialect
  /** The operation's path, cut at its parameters: literal, name, literal, name, ... */
  readonly template: readonly string[]
  readonly log: Logger
  readonly addressOf: AddressReader
  readonly intake: BodyIntake
  /** Throws unless a body has the endpoint's declared shape; removes keys that count as absent. */
  readonly checkBody: ((body: ReadJson) => void) | undefined
}

export function templateOf(path: string): string[] {
  return path.split(/[{}]/)
}

export type PathParams = Readonly<Record<string, string>>

/** That the client of a request goes away before it has the whole answer. An `AbortController` for each request would cost more. */
export class ClientDeparture implements Cancellation {
  readonly #response: Departing

  constructor(response: Departing) {
    this.#response = response
  }

  get aborted(): boolean {
    return this.#response.closed && !this.#response.writableFinished
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    // It closes once. A listener for one time is an object more, and a held sync has it as long as it waits.
    this.#response.on('close', listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#response.off('close', listener)
  }
}

/** One object per request; values that few handlers need are getters. */
export class MountedRequest implements EndpointRequest {
  readonly #raw: Arrived
  readonly #answering: Answering
  readonly #route: RouteFacts
  readonly params: PathParams
  readonly requester: Caller | undefined
  query: unknown
  body: unknown
  bodyOffence: JsonOffence | undefined
  uia: UiaProof | undefined

  constructor(
    raw: Arrived,
    answering: Answering,
    route: RouteFacts,
    params: PathParams,
    requester: Caller | undefined,
  ) {
    this.#raw = raw
    this.#answering = answering
    this.#route = route
    this.params = params
    this.requester = requester
    this.query = undefined
    this.body = undefined
    this.bodyOffence = undefined
    this.uia = undefined
  }

  get dialect(): Dialect {
    return this.#route.dialect
  }

  get isOldPath(): boolean {
    return this.#route.dialect === 'proto' || this.#raw.url.startsWith('/_matrix/client/r0/')
  }

  get id(): string {
    return this.#raw.id
  }

  get ip(): string {
    return addressOf(this.#raw, this.#route.addressOf)
  }

  get isForwarded(): boolean {
    const { headers, raw } = this.#raw
    // To another node its client came, which says so.
    if (raw.socket.remoteAddress === NODE_PEER && headers[LOCAL_CLIENT] !== undefined) return false
    return isByProxy(headers)
  }

  get userAgent(): string | undefined {
    return this.#raw.headers['user-agent']
  }

  get authorization(): string | undefined {
    return this.#raw.headers.authorization
  }

  get hasToken(): boolean {
    const query = this.#raw.query as { access_token?: unknown }
    return this.#raw.headers.authorization !== undefined || query.access_token !== undefined
  }

  get acceptLanguage(): string | undefined {
    return this.#raw.headers['accept-language']
  }

  get exactBody(): unknown {
    if (this.bodyOffence === undefined) return this.body
    const value = readExact(this.bodyText)
    this.#route.checkBody?.({ value, offence: this.bodyOffence })
    return value
  }

  get bodyText(): string {
    return Buffer.isBuffer(this.#raw.body) ? this.#raw.body.toString('utf8') : ''
  }

  get bodyBytes(): number {
    return Buffer.isBuffer(this.#raw.body) ? this.#raw.body.length : 0
  }

  get stream(): AsyncIterable<Buffer> {
    // Only over HTTP come bodies piece by piece.
    return this.#route.intake.stream(this.#raw as FastifyRequest)
  }

  header(name: string): string | undefined {
    const value = this.#raw.headers[name]
    return Array.isArray(value) ? value[0] : value
  }

  get fetchSite(): string | undefined {
    return this.header('sec-fetch-site')
  }

  cookie(name: string): string | undefined {
    return cookieIn(this.#raw.headers.cookie, name)
  }

  get uri(): string {
    return this.#raw.url
  }

  get log(): Logger {
    return this.#route.log.child({ request_id: this.#raw.id })
  }

  get signal(): Cancellation {
    return new ClientDeparture(this.#answering.raw)
  }

  get path(): string {
    const { template } = this.#route
    let path = ''
    for (let i = 0; i < template.length; i++) {
      const piece = template[i] as string
      path += i % 2 === 0 ? piece : encodeURIComponent(this.params[piece] ?? '')
    }
    return path
  }
}
