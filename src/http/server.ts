import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Errcode } from '../core/errors.ts'
import type { ArrivalMetrics } from '../domain/arrival-metrics.ts'
import type { RequestSpan, Tracing } from '../domain/tracing.ts'
import type { BodyIntake } from './body-intake.ts'
import { answerCors, CORS_HEADERS } from './cors.ts'
import { judgeFirst } from './expect-continue.ts'
import { LINGER_MS, linger } from './parting.ts'
import { answerUnrecognised } from './paths/unrecognised.ts'
import { parseQuery } from './query.ts'
import { type ErrorPage, sendError } from './reply.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The declared path of the operation. The requested path may hold ids and tokens. */
    operation: string
  }
}

/** Counts answered requests. `route` is the declared path, never the requested one. */
export interface RequestMetrics {
  observeRequest(method: string, route: string, status: number, seconds: number): void
  readonly arrivals: ArrivalMetrics
}

/** @param error undefined for a path that is not known */
export type Declined = (request: IncomingMessage, response: ServerResponse, error: unknown) => void

export interface ServerOptions {
  readonly log: Logger
  readonly metrics: RequestMetrics
  readonly tracing?: Tracing | undefined
  readonly intake: BodyIntake
  /** Gives each request its id, where others have some too. */
  readonly nextId?: (() => string) | undefined
  /** A page that tells a person in a browser of an error, outside of the interfaces for programs. */
  readonly errorPage?: ErrorPage | undefined
  /** Takes a request that would get an error, or is not known here. Nothing of an answer is sent yet. By default the error is the answer. */
  readonly declined?: Declined | undefined
}

/** What handles the requests of a listener: the framework, or what stands before it in a cluster. */
export interface Routed {
  readonly routing: RequestListener
}

/** Room for a filter written into the query of a sync. */
const MAX_HEADER_BYTES = 64 * 1024
/** Longer than the idle timeouts of usual reverse proxies, so that it is the proxy that closes. */
const KEEP_ALIVE_MS = 75_000
/** A request must arrive in full within this time: 50 MB over a line of 30 kB/s. The time for the answer is not limited. */
const REQUEST_TIMEOUT_MS = 1_800_000
/** A connection must send the headers of its first request, and of each request that it has begun, within this time. */
const HEADERS_TIMEOUT_MS = 20_000
/** How often Node checks these two limits. */
const LOOK_EVERY_MS = 5_000
/** Settings of every connection, with TLS or without. */
export const CONNECTIONS = {
  keepAliveTimeout: KEEP_ALIVE_MS,
  requestTimeout: REQUEST_TIMEOUT_MS,
  headersTimeout: HEADERS_TIMEOUT_MS,
  connectionsCheckingInterval: LOOK_EVERY_MS,
  maxHeaderSize: MAX_HEADER_BYTES,
}

/** Gives each request an id: one that no other process gives, and the next number. */
export function requestIds(): () => string {
  const prefix = randomBytes(4).toString('hex')
  let count = 0
  return () => `${prefix}-${(++count).toString(36)}`
}

/** Status, code and text for an error of the HTTP parser. */
function whatBroke(error: BrokenRequest): readonly [string, Errcode, string] {
  const { code } = error
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return ['408 Request Timeout', 'M_UNKNOWN', 'The request did not come in time. Send it again.']
  }
  if (code !== 'HPE_HEADER_OVERFLOW') return ['400 Bad Request', 'M_UNKNOWN', 'This is not a request that HTTP allows.']
  if (isRequestLine(error)) {
    const text = `The request line is too long: with the headers it may have ${MAX_HEADER_BYTES} bytes. Shorten the path or the query.`
    return ['414 URI Too Long', 'M_TOO_LARGE', text]
  }
  const text = `The request line or the headers are too long: together they may have ${MAX_HEADER_BYTES} bytes.`
  return ['431 Request Header Fields Too Large', 'M_TOO_LARGE', text]
}

/** Whether the part that was too long belongs to the request line: it contains the beginning or the end of that line. */
function isRequestLine({ rawPacket, bytesParsed }: BrokenRequest): boolean {
  const text = rawPacket?.toString('latin1') ?? ''
  return /^[A-Z]{3,7} [^\s]+ ?$/.test(text.slice(0, bytesParsed)) || /^ ?HTTP\/1\.\d\r\n/.test(text.slice(bytesParsed))
}

interface BrokenRequest extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
  readonly bytesParsed?: number
}

/** Bytes that are not HTTP at all: the answer is written to the socket by hand. */
export function answerBrokenRequest(error: BrokenRequest, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [status, errcode, text] = whatBroke(error)
  const body = JSON.stringify({ errcode, error: text })
  const headers = {
    ...CORS_HEADERS,
    'content-type': 'application/json',
    'content-length': body.length,
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${body}`)
  // A client that does not close its side is cut off.
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

function observe(app: FastifyInstance, options: ServerOptions): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const { operation: route } = request
    // The node that answers it counts it.
    if (route === PASSED_ON) return done()
    const { id, method } = request
    observeAnswer(options, { id, method, route, status: reply.statusCode, ms: reply.elapsedTime })
    if (!request.raw.complete) linger(reply)
    done()
  })
}

export interface AnsweredRequest {
  readonly id: string
  readonly method: string
  /** The declared path. */
  readonly route: string
  readonly status: number
  readonly ms: number
}

/** Counts an answered request, and says in the log for debugging that there was one. */
export function observeAnswer(
  { log, metrics }: { readonly log: Logger; readonly metrics: Pick<RequestMetrics, 'observeRequest'> },
  { id, method, route, status, ms }: AnsweredRequest,
): void {
  metrics.observeRequest(method, route, status, ms / 1000)
  if (log.isLevelEnabled('debug')) log.debug({ request_id: id, method, route, status, ms: Math.round(ms) })
}

function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  const spans = new WeakMap<FastifyRequest, RequestSpan>()
  app.addHook('onRequest', (request, _reply, done) => {
    const span = tracing.begin()
    spans.set(request, span)
    span.within(done)
  })
  app.addHook('onResponse', (request, reply, done) => {
    spans.get(request)?.end(request.method, request.operation, reply.statusCode)
    done()
  })
}

/** No route has a schema for the framework (`validate.ts` checks what is sent), so its two compilers are not even loaded. */
const NO_SCHEMAS = { buildValidator: unused, buildSerializer: unused }

function unused(): never {
  throw new Error('the framework is given no schemas')
}

/** A Fastify server with everything that all roles share: errors, CORS, bodies as bytes, unknown paths, request ids. */
export function createServer(options: ServerOptions): FastifyInstance {
  const app = fastify({
    // This server writes its own request log, without query strings, where tokens may be.
    logger: false,
    genReqId: options.nextId ?? requestIds(),
    exposeHeadRoutes: false,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    keepAliveTimeout: CONNECTIONS.keepAliveTimeout,
    requestTimeout: CONNECTIONS.requestTimeout,
    http: CONNECTIONS,
    routerOptions: {
      ignoreTrailingSlash: true,
      querystringParser: parseQuery as never,
    },
    schemaController: { compilersFactory: NO_SCHEMAS },
    frameworkErrors: (error, _request, reply) => {
      sendError(reply.headers(CORS_HEADERS) as FastifyReply, error, options.log)
    },
    clientErrorHandler: answerBrokenRequest as never,
  })
  judgeFirst(app.server, (request, response) => app.routing(request, response))
  app.removeAllContentTypeParsers()
  // No path knows this method. Without this the framework refuses it for the lack of a content type, before that is found.
  app.addHttpMethod('QUERY', { overrideExisting: true })
  app.decorateRequest('operation', 'unmatched')
  app.decorateRequest('maxBodyBytes', 0)
  app.decorateRequest('heldBody', undefined)
  app.decorateRequest('isLate', false)
  app.addContentTypeParser('*', (request, _payload, done) => options.intake.read(request, done))
  const { declined } = options
  if (declined) app.setErrorHandler((error, request, reply) => decline(error, request, reply, declined))
  else app.setErrorHandler((error, request, reply) => sendError(reply, error, options.log, pageFor(request, options)))
  if (options.tracing) traceRequests(app, options.tracing)
  observe(app, options)
  answerCors(app)
  if (declined) app.setNotFoundHandler((request, reply) => decline(undefined, request, reply, declined))
  else answerUnrecognised(app)
  return app
}

/** What programs ask, whatever they say they would like. */
const INTERFACES = /^\/(?:_matrix|_proto|_synapse|\.well-known|_hearth\/(?:admin|livekit))\//

function pageFor({ url, errorPage }: FastifyRequest, options: ServerOptions): ErrorPage | undefined {
  return errorPage ?? (INTERFACES.test(url) ? undefined : options.errorPage)
}

/** In place of the operation of a request that another node answers. */
const PASSED_ON = 'passed on'

function decline(error: unknown, request: FastifyRequest, reply: FastifyReply, declined: Declined): void {
  request.operation = PASSED_ON
  // Those of an answer in pieces that failed before its first byte.
  for (const name of reply.raw.getHeaderNames()) if (name !== 'connection') reply.raw.removeHeader(name)
  reply.hijack()
  declined(request.raw, reply.raw, error)
}
