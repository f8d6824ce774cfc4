import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import { buildConnector, type Dispatcher, Pool } from 'undici'
import type { Config } from '../config/schema.ts'
import { createCache } from '../core/cache.ts'
import { type AddressGuard, createAddressGuard } from './addresses.ts'
import { hurry, startDeadline } from './deadline.ts'
import { type Failure, failureOf, RefusedError, TooLargeError } from './failures.ts'
import { createLoopTurns } from './loop-turns.ts'
import { createNames, type Names } from './names.ts'
import { Patience } from './patience.ts'
import { Places } from './places.ts'
import { countWaitingRequests } from './waiting-requests.ts'

export type HttpHeaders = Readonly<Record<string, string>>

export interface HttpRequest {
  readonly method: string
  readonly url: string
  /** Or what makes them, where that is work: done when it is the request's turn. */
  readonly headers?: HttpHeaders | (() => HttpHeaders)
  readonly body?: string | Buffer | Readable | undefined
  /** At most, for everything together: finding the address, connecting, redirects, the answer's last byte. */
  readonly timeoutMs: number
  /** Of the answer's body. */
  readonly maxBytes: number
  /** How many redirects of a GET are followed; one more is a failure, as is any for other methods. None unless said. */
  readonly redirects?: number
  /** Whether a redirect may lead there; anywhere without. */
  mayFollow?(url: URL): boolean
  /** Where to connect instead of the URL's host and port, which still name the `Host` and the certificate. */
  readonly via?: { readonly host: string; readonly port: number } | undefined
  /** Nobody waits for it: where there is no connection yet, others go before it. */
  readonly isPatient?: boolean | undefined
}

export interface HttpAnswer {
  readonly ok: true
  readonly status: number
  /** Names in lower case; one that repeats is joined with commas. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Where it came from, after redirects. */
  readonly url: string
  /** The certificate that spoke for it, where there was one and it is read. */
  readonly certificate: PeerCertificate | undefined
}

export interface PeerCertificate {
  readonly validUntil: number
  /** Who vouches for it, in its own words. */
  readonly issuer: string
}

/** A request whose answer is read as it comes. `timeoutMs` is for the answer's header alone. */
export interface HttpStreamRequest extends HttpRequest {
  /** For the answer's body, from its first to its last byte. */
  readonly bodyMs: number
}

export interface HttpStream {
  readonly ok: true
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Where it comes from, after redirects. */
  readonly url: string
  /** To be read to its end, left early, or given up with `cancel`. Throws when it breaks off, takes too long or is too long: see `failureOf`. */
  readonly body: AsyncIterable<Buffer>
  cancel(): void
}

/** The one way in which this server calls others. Never throws: what went wrong is part of the result. */
export interface GuardedClient {
  request(request: HttpRequest): Promise<HttpAnswer | Failure>
  stream(request: HttpStreamRequest): Promise<HttpStream | Failure>
  close(): Promise<void>
}

export interface GuardedClientOptions {
  readonly config: Pick<Config, 'outbound'>
  readonly log: Logger
  readonly userAgent?: string
  /** Who resolves names; DNS without. */
  readonly names?: Names
  /** To one place at the same time. */
  readonly connections?: number
  /** Whether answers tell of certificates. */
  readonly readsCertificates?: boolean
}

const CONNECT_TIMEOUT_MS = 5_000
const OLDEST_TLS = 'TLSv1.2'
const CONNECTIONS_PER_TARGET = 8
/** New connections that begin in one turn of the event loop. */
const CONNECTIONS_PER_TURN = 8
/** Targets that connections are kept to; the one not used for longest is closed. */
const MAX_TARGETS = 1_000
/** How long a connection is kept that nothing goes over, whatever the other side offers: it takes a tenth of a megabyte. */
const KEPT_MS = 60_000
/** An answer's header; other servers have no reason to send more. */
const MAX_HEADER_BYTES = 16_384
/** What stands in an answer that sends us on is read so far for the sake of its connection. */
const MAX_REDIRECT_BYTES = 65_536

interface Peer {
  /** The last one seen. */
  certificate: PeerCertificate | undefined
}

/** An answer whose body is still to come. */
interface Opened extends Omit<HttpAnswer, 'ok' | 'body'> {
  readonly body: Dispatcher.ResponseData['body']
}

/** Connections to one place for one name. */
interface Target {
  readonly key: string
  readonly pool: Pool
  /** Hands requests to the pool. */
  readonly dispatcher: Dispatcher
  readonly peer: Peer
  readonly places: Places
  /** Requests that are not over. */
  running: number
}

export async function createGuardedClient(options: GuardedClientOptions): Promise<GuardedClient> {
  const { allow_ranges, ca_file } = options.config.outbound
  const guard = createAddressGuard(allow_ranges)
  const connect = buildConnector({
    lookup: guardedLookup(options.names ?? createNames(), guard),
    timeout: CONNECT_TIMEOUT_MS,
    // One for all: each would take time and memory to be made.
    secureContext: await trusting(ca_file),
  } as buildConnector.BuildOptions)
  /** Handshakes take a millisecond or two each: those of a hundred servers at once would keep everybody else waiting. */
  const nextTurn = createLoopTurns(CONNECTIONS_PER_TURN)
  const patience = new Patience()
  const targets = createCache<string, Target>(MAX_TARGETS, {
    dispose: ({ pool }) =>
      void pool.close().catch((err: unknown) => options.log.debug({ err }, 'a pool did not close')),
  })

  function targetFor(url: URL, { host, port }: Place): Target {
    const servername = url.hostname
    const key = `${url.protocol}//${host}:${port} ${servername}`
    const known = targets.get(key)
    if (known !== undefined) return known
    const peer: Peer = { certificate: undefined }
    const waiting = countWaitingRequests()
    const pool = new Pool(`${url.protocol}//${host}:${port}`, {
      connect(wanted, done) {
        const begin = () => {
          if (waiting.count === 0) return done(new Error('nobody waits for a connection'), null)
          connect(isLiteral(servername) ? wanted : { ...wanted, servername }, (...made) => {
            if (options.readsCertificates) peer.certificate = certificateOf(made[1] ?? null) ?? peer.certificate
            done(...made)
          })
        }
        nextTurn()
          .then(begin)
          .catch((error: Error) => done(error, null))
      },
      connections: options.connections ?? CONNECTIONS_PER_TARGET,
      keepAliveMaxTimeout: KEPT_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // The whole request has a time limit of its own.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const dispatcher = pool.compose(waiting.interceptor)
    const target = { key, pool, dispatcher, peer, places: new Places(), running: 0 }
    targets.set(key, target)
    pool.on('disconnect', () => forgetIdle(target))
    return target
  }

  /** Many that are asked once, or are gone, leave nothing behind. */
  function forgetIdle(target: Target): void {
    const { key, pool, running } = target
    if (running === 0 && pool.stats.connected === 0 && targets.peek(key) === target) targets.delete(key)
  }

  /** Has the answer of a target begin. */
  async function ask(target: Target, request: HttpRequest, url: URL, signal: AbortSignal): Promise<Opened> {
    const { pool, dispatcher, peer } = target
    const connected = request.isPatient && pool.stats.connected === 0 ? await patience.turn() : undefined
    try {
      const { statusCode, headers, body } = await dispatcher.request({
        method: request.method as 'GET',
        path: url.pathname + url.search,
        headers: {
          'accept-encoding': 'identity',
          ...(options.userAgent !== undefined && { 'user-agent': options.userAgent }),
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

  async function open(request: HttpRequest, url: URL, signal: AbortSignal): Promise<Opened> {
    const place = placeOf(url, request.via)
    if (isLiteral(place.host) && !guard(bare(place.host))) throw refusedAddress(bare(place.host))
    const target = targetFor(url, place)
    // What nobody waits for is asked one at a time anyway, and what is read as it comes may take long.
    const places = request.isPatient || 'bodyMs' in request ? undefined : target.places
    const over = (): void => {
      target.running--
      forgetIdle(target)
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

  async function follow(request: HttpRequest, signal: AbortSignal): Promise<Opened> {
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

  async function whole(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const answer = await follow(request, signal)
    const { body } = answer
    const { maxBytes, timeoutMs } = request
    if (Number(answer.headers['content-length']) > maxBytes) body.destroy(new TooLargeError(maxBytes))
    return { ...answer, ok: true, body: await readUpTo(body, maxBytes, hurry(body, timeoutMs)) }
  }

  return {
    async request(request) {
      const deadline = startDeadline(request.timeoutMs)
      try {
        return await Promise.race([whole(request, deadline.signal), deadline.over])
      } catch (error) {
        return failureOf(error)
      } finally {
        deadline.met()
      }
    },
    async stream(request) {
      const deadline = startDeadline(request.timeoutMs)
      try {
        const { status, headers, url, body } = await Promise.race([follow(request, deadline.signal), deadline.over])
        deadline.extend(request.bodyMs)
        body.once('close', deadline.met)
        const cancel = () => void body.on('error', () => {}).destroy()
        return { ok: true, status, headers, url, body: upTo(body, request.maxBytes), cancel }
      } catch (error) {
        deadline.met()
        return failureOf(error)
      }
    },
    async close() {
      await Promise.all([...targets.values()].map(({ pool }) => pool.destroy()))
      targets.clear()
    },
  }
}

function certificateOf(socket: Socket | null): PeerCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined
  // Empty where an earlier connection is resumed, and whatever its type says.
  const { valid_to, issuer }: Partial<ReturnType<TLSSocket['getPeerCertificate']>> = socket.getPeerCertificate()
  if (valid_to === undefined) return undefined
  return { validUntil: Date.parse(valid_to), issuer: [issuer?.O ?? issuer?.CN ?? ''].flat().join(', ') }
}

/** Looks names up at the moment of connecting, so that no name can be one address when it is judged and another when it is used. */
function guardedLookup(names: Names, guard: AddressGuard): LookupFunction {
  return (host, { all }, callback) => {
    const fail = (error: Error): void => callback(error, [])
    names.addressesOf(host).then((found) => {
      const [first, ...others] = found.filter(({ address }) => guard(address))
      if (first === undefined)
        return fail(refusedAddress(`${host} (${found.map(({ address }) => address).join(', ')})`))
      if (all) callback(null, [first, ...others])
      else callback(null, first.address, first.family)
    }, fail)
  }
}

function refusedAddress(address: string): RefusedError {
  return new RefusedError(`${address} is not on the public internet; outbound.allow_ranges opens other networks`)
}

/** What certificates are judged by. @param caFile an authority beside the usual ones */
async function trusting(caFile: string | undefined): Promise<SecureContext> {
  const secureContext = createSecureContext({ minVersion: OLDEST_TLS })
  if (caFile === undefined) return secureContext
  try {
    const ca = await readFile(caFile, 'utf8')
    // The context itself passes over what is no certificate.
    new X509Certificate(ca)
    const { context } = secureContext as { context: { addCACert(ca: string): void } }
    // As an option, it would replace the usual ones, and to read those again takes 50 ms.
    context.addCACert(ca)
    return secureContext
  } catch (error) {
    throw new Error(`outbound.ca_file: ${caFile} cannot be used: ${(error as Error).message}`)
  }
}

interface Place {
  /** As in a URL: IPv6 in brackets. */
  readonly host: string
  readonly port: number
}

function placeOf(url: URL, via: HttpRequest['via']): Place {
  if (via === undefined) return { host: url.hostname, port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)) }
  // By way of a URL, so that every spelling of an address becomes the usual one.
  return { host: addressOf(`https://${isIP(via.host) === 6 ? `[${via.host}]` : via.host}`).hostname, port: via.port }
}

function addressOf(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw new RefusedError(`"${text.slice(0, 200)}" is no address`)
  const url = new URL(text, base)
  if (!/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new RefusedError(`"${text.slice(0, 200)}" is no address that is called`)
  }
  return url
}

const bare = (host: string): string => host.replace(/^\[|\]$/g, '')
const isLiteral = (host: string): boolean => isIP(bare(host)) !== 0
const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status)

async function* upTo(body: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    // Leaving the loop ends the connection.
    if (size > maxBytes) throw new TooLargeError(maxBytes)
    yield chunk
  }
}

/** @throws TooLargeError */
export async function readUpTo(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
  told?: (bytes: number) => void,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of upTo(body, maxBytes)) {
    chunks.push(chunk)
    told?.(chunk.length)
  }
  return Buffer.concat(chunks)
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]))
}
