import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Connections, PeerCertificate, Target } from './connections.ts'
import { RefusedError } from './failures.ts'
import { Patience } from './patience.ts'
import { addressOf, placeOf } from './url-place.ts'

export type HttpHeaders = Readonly<Record<string, string>>

/** A request, and how many redirects it follows. */
export interface ExchangeRequest {
  readonly method: string
  readonly url: string
  /** Headers, or a function that makes them if that is costly: it runs when it is the request's turn. */
  readonly headers?: HttpHeaders | (() => HttpHeaders)
  readonly body?: string | Buffer | Readable | undefined
  /** How many redirects of a GET are followed. One more is a failure, and so is any redirect of other methods. 0 by default. */
  readonly redirects?: number
  /** Whether a redirect to this URL is allowed. Without it, all are. */
  mayFollow?(url: URL): boolean
  /** The host and port to connect to. `Host` and the certificate still follow the URL. */
  readonly via?: { readonly host: string; readonly port: number } | undefined
  /** Nobody waits for the answer, so other requests get new connections first. */
  readonly isPatient?: boolean | undefined
  /** Set if the body is read as a stream: the time from its first to its last byte. */
  readonly bodyMs?: number
}

/** An answer whose body has yet to be read. */
export interface Opened {
  readonly status: number
  /** Names in lower case; repeated ones are joined with commas. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Dispatcher.ResponseData['body']
  /** The URL of the answer, after redirects. */
  readonly url: string
  /** The server's certificate, if there was one and it is wanted. */
  readonly certificate: PeerCertificate | undefined
}

/**
 * Sends a request, and follows redirects as far as allowed. Resolves when the answer's header has arrived; throws errors that `failureOf`
 * reads.
 */
export type Exchange = (request: ExchangeRequest, signal: AbortSignal) => Promise<Opened>

/** A redirect's body is read up to this size, so that the connection can be used again. */
const MAX_REDIRECT_BYTES = 65_536

export function createExchange(connections: Connections, userAgent: string | undefined): Exchange {
  const patience = new Patience()

  /** Sends a request to a target and waits for the answer's header. */
  async function ask(target: Target, request: ExchangeRequest, url: URL, signal: AbortSignal): Promise<Opened> {
    const { pool, dispatcher, peer } = target
    const connected = request.isPatient && pool.stats.connected === 0 ? await patience.turn() : undefined
    try {
      const { statusCode, headers, body } = await dispatcher.request({
        method: request.method as 'GET',
        path: url.pathname + url.search,
        headers: {
          'accept-encoding': 'identity',
          ...(userAgent !== undefined && { 'user-agent': userAgent }),
          ...(typeof request.headers === 'function' ? request.headers() : request.headers),
          host: url.host,
        },
        body: request.body ?? null,
        signal,
      })
      return { status: statusCode, headers: flat(headers), body, url: url.href, certificate: peer.certificate }
    } finally {
      connected?.()
    }
  }

  async function open(request: ExchangeRequest, url: URL, signal: AbortSignal): Promise<Opened> {
    const target = connections.to(url, placeOf(url, request.via))
    // Requests that nobody waits for run one at a time anyway, and streams may take long.
    const places = request.isPatient || request.bodyMs !== undefined ? undefined : target.places
    const over = (): void => {
      target.running--
      connections.forgetIdle(target)
    }
    target.running++
    try {
      await places?.enter(signal)
    } catch (error) {
      over()
      throw error
    }
    try {
      const answer = await ask(target, request, url, signal)
      const { body } = answer
      body.once('close', () => {
        if (body.readableEnded) places?.answered()
        else places?.failed(signal.aborted ? signal.reason : body.errored)
        over()
      })
      return answer
    } catch (error) {
      places?.failed(error)
      over()
      throw error
    }
  }

  async function follow(request: ExchangeRequest, signal: AbortSignal): Promise<Opened> {
    const url = addressOf(request.url)
    const answer = await open(request, url, signal)
    const { location } = answer.headers
    if (!isRedirect(answer.status) || location === undefined) return answer
    await answer.body.dump({ limit: MAX_REDIRECT_BYTES })
    const left = request.method === 'GET' ? (request.redirects ?? 0) : 0
    if (left === 0) throw new RefusedError(`${url.host} sends us on, to ${location.slice(0, 200)}`)
    const next = addressOf(location, url)
    if (url.protocol === 'https:' && next.protocol !== 'https:') {
      throw new RefusedError(`${url.host} sends us on to an address without TLS`)
    }
    if (request.mayFollow?.(next) === false) throw new RefusedError(`${url.host} sends us on, to ${next.host}`)
    // Headers for one host must not go to another.
    const { via, headers = {}, ...rest } = request
    const kept = next.origin === url.origin ? { headers, via } : {}
    return follow({ ...rest, ...kept, url: next.href, redirects: left - 1 }, signal)
  }

  return follow
}

const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status)

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]))
}
