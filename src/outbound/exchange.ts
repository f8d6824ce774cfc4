import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Connections, PeerCertificate, Target } from './connections.ts'
import type { TimeLimit } from './deadline.ts'
import { RefusedError } from './failures.ts'
import { Patience } from './patience.ts'
import { addressOf, placeOf } from './url-place.ts'
import { type Answered, flat, isRedirect, MAX_REDIRECT_BYTES, WholeAnswer } from './whole-answer.ts'

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

/** A request whose answer is read to its end. */
export interface WholeRequest extends ExchangeRequest {
  /** The limit for everything together: DNS, connecting, redirects, and the answer's last byte. */
  readonly timeoutMs: number
  /** The limit for the answer's body. */
  readonly maxBytes: number
}

interface Answer {
  readonly status: number
  /** Names in lower case; repeated ones are joined with commas. */
  readonly headers: Readonly<Record<string, string>>
  /** The URL of the answer, after redirects. */
  readonly url: string
  /** The server's certificate, if there was one and it is wanted. */
  readonly certificate: PeerCertificate | undefined
}

/** An answer whose body has yet to be read. */
export interface Opened extends Answer {
  readonly body: Dispatcher.ResponseData['body']
}

/** An answer that was read. */
export interface Read extends Answer {
  readonly body: Buffer
}

/** Sends requests, and follows redirects as far as allowed. Throws errors that `failureOf` reads. */
export interface Exchange {
  /** Resolves when the answer's header has arrived. */
  open(request: ExchangeRequest, signal: AbortSignal): Promise<Opened>
  /** Resolves when the answer has ended. */
  read(request: WholeRequest, limit: TimeLimit): Promise<Read>
}

export function createExchange(connections: Connections, userAgent: string | undefined): Exchange {
  const patience = new Patience()

  function optionsOf(request: ExchangeRequest, url: URL): Dispatcher.DispatchOptions {
    const headers: Record<string, string> = { 'accept-encoding': 'identity' }
    if (userAgent !== undefined) headers['user-agent'] = userAgent
    Object.assign(headers, typeof request.headers === 'function' ? request.headers() : request.headers)
    headers.host = url.host
    return { method: request.method as 'GET', path: url.pathname + url.search, headers, body: request.body ?? null }
  }

  /** Waits for the turn of a request to connect, if it needs one. @returns a function to call when it has connected */
  async function turnOf({ pool }: Target, { isPatient }: ExchangeRequest): Promise<(() => void) | undefined> {
    return isPatient && pool.stats.connected === 0 ? patience.turn() : undefined
  }

  /** Sends a request to a target and waits for the answer's header. */
  async function ask(target: Target, request: ExchangeRequest, url: URL, signal: AbortSignal): Promise<Opened> {
    const { dispatcher, peer } = target
    const connected = await turnOf(target, request)
    try {
      const options = { ...optionsOf(request, url), signal }
      const { statusCode, headers, body } = await dispatcher.request(options)
      return { status: statusCode, headers: flat(headers), body, url: url.href, certificate: peer.certificate }
    } finally {
      connected?.()
    }
  }

  async function open(request: ExchangeRequest, signal: AbortSignal): Promise<Opened> {
    const url = addressOf(request.url)
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

  /** Sends a request to a target and waits for the end of the answer. */
  async function askWhole(target: Target, request: WholeRequest, url: URL, limit: TimeLimit): Promise<Answered> {
    const { pool, waiting } = target
    const { timeoutMs, maxBytes } = request
    const answers = request.isPatient ? await turnOf(target, request) : undefined
    return new Promise((resolve, reject) => {
      const options = optionsOf(request, url)
      pool.dispatch(options, new WholeAnswer({ limit, timeoutMs, maxBytes, waiting, answers, resolve, reject }))
    })
  }

  async function readOne(request: WholeRequest, url: URL, limit: TimeLimit): Promise<Read> {
    const target = connections.to(url, placeOf(url, request.via))
    const places = request.isPatient ? undefined : target.places
    target.running++
    try {
      await places?.enter(limit)
      try {
        const { status, headers, body } = await askWhole(target, request, url, limit)
        places?.answered()
        return { status, headers, body, url: url.href, certificate: target.peer.certificate }
      } catch (error) {
        places?.failed(error)
        throw error
      }
    } finally {
      target.running--
      connections.forgetIdle(target)
    }
  }

  return {
    async open(request, signal) {
      let next = request
      for (;;) {
        const answer = await open(next, signal)
        const { location } = answer.headers
        if (!isRedirect(answer.status) || location === undefined) return answer
        await answer.body.dump({ limit: MAX_REDIRECT_BYTES })
        next = redirected(next, location)
      }
    },
    async read(request, limit) {
      let next = request
      for (;;) {
        const answer = await readOne(next, addressOf(next.url), limit)
        const { location } = answer.headers
        if (!isRedirect(answer.status) || location === undefined) return answer
        next = redirected(next, location)
      }
    },
  }
}

/** The request that a redirect leads to. @throws RefusedError if it is not to be followed */
function redirected<R extends ExchangeRequest>(request: R, location: string): R {
  const url = addressOf(request.url)
  const left = request.method === 'GET' ? (request.redirects ?? 0) : 0
  if (left === 0) throw new RefusedError(`${url.host} sends us on, to ${location.slice(0, 200)}`)
  const next = addressOf(location, url)
  if (url.protocol === 'https:' && next.protocol !== 'https:') {
    throw new RefusedError(`${url.host} sends us on to an address without TLS`)
  }
  if (request.mayFollow?.(next) === false) throw new RefusedError(`${url.host} sends us on, to ${next.host}`)
  const followed = { ...request, url: next.href, redirects: left - 1 }
  // Headers for one host must not go to another.
  return next.origin === url.origin ? followed : { ...followed, headers: {}, via: undefined }
}
