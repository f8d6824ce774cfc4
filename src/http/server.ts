import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { answerPreflights, CORS_HEADERS } from './cors.ts'
import { parseQuery } from './query.ts'
import { routeOf, sendError } from './reply.ts'
import { answerUnrecognised } from './unrecognised.ts'

/** What is told of each answered request. `route` is the path as declared, never the one that was asked for. */
export interface RequestMetrics {
  observeRequest(method: string, route: string, status: number, seconds: number): void
}

export interface ServerOptions {
  readonly log: Logger
  readonly metrics: RequestMetrics
}

/** Room for a filter written into the query of a sync. */
const MAX_HEADER_BYTES = 64 * 1024
/** Every identifier fits in 255 bytes; each byte may be percent-encoded. */
const MAX_PARAM_CHARS = 2048
/** Longer than the idle timeouts of usual reverse proxies, so that it is the proxy that closes. */
const KEEP_ALIVE_MS = 75_000
/** A request must have arrived whole within this time: 50 MB over a line of 30 kB/s. It does not bound how long an answer may take. */
const REQUEST_TIMEOUT_MS = 1_800_000
/** What holds for every connection, with TLS or without. */
export const CONNECTIONS = {
  keepAliveTimeout: KEEP_ALIVE_MS,
  requestTimeout: REQUEST_TIMEOUT_MS,
  maxHeaderSize: MAX_HEADER_BYTES,
}

function requestIds(): () => string {
  const prefix = randomBytes(4).toString('hex')
  let count = 0
  return () => `${prefix}-${(++count).toString(36)}`
}

/** Bytes that are not HTTP at all: the answer is written to the socket by hand. */
export function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request'
  const body = JSON.stringify({ errcode: 'M_UNKNOWN', error: 'This is not a request that HTTP allows.' })
  const headers = {
    ...CORS_HEADERS,
    'content-type': 'application/json',
    'content-length': body.length,
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${body}`)
}

function observe(app: FastifyInstance, { log, metrics }: ServerOptions): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(CORS_HEADERS).header('x-request-id', request.id)
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const route = routeOf(request)
    const ms = reply.elapsedTime
    metrics.observeRequest(request.method, route, reply.statusCode, ms / 1000)
    if (log.isLevelEnabled('debug')) {
      log.debug({ request_id: request.id, method: request.method, route, status: reply.statusCode, ms: Math.round(ms) })
    }
    done()
  })
}

/** A server with everything that holds for all roles: errors, CORS, bodies as bytes, unknown paths, request ids. */
export function createServer(options: ServerOptions): FastifyInstance {
  const app = fastify({
    // This server writes its own request log, without query strings, where tokens may be.
    logger: false,
    genReqId: requestIds(),
    exposeHeadRoutes: false,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    keepAliveTimeout: CONNECTIONS.keepAliveTimeout,
    requestTimeout: CONNECTIONS.requestTimeout,
    http: { maxHeaderSize: CONNECTIONS.maxHeaderSize },
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength: MAX_PARAM_CHARS,
      querystringParser: parseQuery as never,
    },
    frameworkErrors: (error, _request, reply) => {
      sendError(reply.headers(CORS_HEADERS) as FastifyReply, error, options.log)
    },
    clientErrorHandler: answerBrokenRequest as never,
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))
  app.setErrorHandler((error, _request, reply) => sendError(reply, error, options.log))
  observe(app, options)
  answerUnrecognised(app)
  answerPreflights(app)
  return app
}
