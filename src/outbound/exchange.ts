import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Connections, PeerCertificate, Target } from './connections.ts'
import { RefusedError } from './failures.ts'
import { Patience } from './patience.ts'
import { addressOf, placeOf } from './url-place.ts'

export type HttpHeaders = Readonly<Record<string, string>>

/** What is sent, and how far it may be sent on. */
export interface ExchangeRequest {
  readonly method: string
  readonly url: string
  /** Or what makes them, where that is work: done when it is the request's turn. */
  readonly headers?: HttpHeaders | (() => HttpHeaders)
  readonly body?: string | Buffer | Readable | undefined
  /** How many redirects of a GET are followed; one more is a failure, as is any for other methods. None unless said. */
  readonly redirects?: number
  /** Whether a redirect may lead there; anywhere without. */
  mayFollow?(url: URL): boolean
  /** Where to connect instead of the URL's host and port, which still name the `Host` and the certificate. */
  readonly via?: { readonly host: string; readonly port: number } | undefined
  /** Nobody waits for it: where there is no connection yet, others go before it. */
  readonly isPatient?: boolean | undefined
  /** Set where the answer is read as it comes: the time for its body, from its first to its last byte. */
  readonly bodyMs?: number
}

/** An answer whose body is still to come. */
export interface Opened {
  readonly status: number
  /** Names in lower case; one that repeats is joined with commas. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Dispatcher.ResponseData['body']
  /** Where it came from, after redirects. */
  readonly url: string
  /** The certificate that spoke for it, where there was one and it is read. */
  readonly certificate: PeerCertificate | undefined
}

/** Sends a request, and follows redirects as far as it allows. Resolves when the header of the answer is there; throws what `failureOf` reads. */
export type Exchange = (request: ExchangeRequest, signal: AbortSignal) => Promise<Opened>

/** What stands in an answer that sends us on is read so far for the sake of its connection. */
const MAX_REDIRECT_BYTES = 65_536

export function createExchange(connections: Connections, userAgent: string | undefined): Exchange {
  const patience = new Patience()

  /** Has the answer of a target begin. */
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
    // What nobody waits for is asked one at a time anyway, and what is read as it comes may take long.
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
    // What was meant for one host is not told to another.
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
