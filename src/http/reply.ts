import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { type Errcode, ProtocolError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import { writeJson } from '../core/large-integers.ts'
import { type Compression, isLarge, isWhole, type Plain } from './compression.ts'
import { RawReply, type Reply } from './endpoint.ts'
import { partWith } from './parting.ts'

const JSON_TYPE = 'application/json'
const BODILESS: ReadonlySet<number> = new Set([204, 304])

/** Sends JSON text. */
export function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return sendWhole(reply.header('content-type', JSON_TYPE), text)
}

/** Sends what a handler returned. */
export function sendReply(reply: FastifyReply, answer: Reply, compression: Compression): FastifyReply {
  if (!(answer instanceof RawReply)) return sendJsonBody(reply, writeJson(answer), compression)
  const { status, headers, body, closed } = answer
  if (closed) whenClosed(reply.raw, closed)
  reply.code(status).headers(headers)
  if (reply.hasHeader('content-type')) return sendBody(reply, body)
  return sendJsonBody(reply, body, compression)
}

function sendJsonBody(reply: FastifyReply, body: Plain, compression: Compression): FastifyReply {
  reply.header('content-type', JSON_TYPE)
  if (!isLarge(body)) return sendBody(reply, body)
  reply.header('vary', 'accept-encoding')
  const compressed = compression.compress(reply.request, body)
  return compressed ? reply.header('content-encoding', 'gzip').send(compressed) : sendBody(reply, body)
}

const sendBody = (reply: FastifyReply, body: Plain): FastifyReply =>
  isWhole(body) ? sendWhole(reply, body) : reply.send(body)

/** Past the framework's own sending, which would inspect the body, and add a `charset`, which JSON does not have. */
function sendWhole(reply: FastifyReply, body: string | Buffer): FastifyReply {
  const { raw } = reply
  // Nobody is there to read it.
  if (raw.headersSent || raw.destroyed) return reply.hijack()
  // An answer that has no body by its status says no length (RFC 9110, section 8.6).
  const bytes = Buffer.byteLength(body)
  if (!BODILESS.has(reply.statusCode)) reply.header('content-length', bytes)
  try {
    raw.writeHead(raw.statusCode, reply.getHeaders() as OutgoingHttpHeaders)
  } catch (error) {
    // A header that HTTP does not allow. The error's answer must not have it too; scripts must still be able to read that.
    for (const name of Object.keys(reply.getHeaders())) {
      if (!name.startsWith('access-control-')) reply.removeHeader(name)
    }
    throw error
  }
  // Not before the head is out: an error up to here still has an answer.
  reply.hijack()
  if (typeof body !== 'string' && bytes <= SENT_AS_TEXT) raw.end(body.toString('latin1'), 'latin1')
  // Text of as many bytes as characters is ASCII, which is copied as it is.
  else if (bytes === body.length && typeof body === 'string') raw.end(body, 'latin1')
  else raw.end(body)
  return reply
}

/** Fewer bytes are copied behind the head, byte by byte as Latin-1, because one write of text costs less than a write of two pieces. */
const SENT_AS_TEXT = 4_096

function whenClosed(response: ServerResponse, listener: () => void): void {
  if (response.closed) listener()
  else response.once('close', listener)
}

/** Our codes and texts for the framework's own errors. */
const FRAMEWORK_ERRORS: Readonly<Record<string, readonly [Errcode, number, string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['M_NOT_JSON', 400, 'The Content-Type header is malformed.'],
  FST_ERR_BAD_URL: ['M_INVALID_PARAM', 400, 'The path holds a broken percent escape.'],
}

function toProtocolError(error: unknown): ProtocolError | undefined {
  if (error instanceof ProtocolError) return error
  if (!(error instanceof Error)) return undefined
  const { code } = error as { code?: unknown }
  const known = typeof code === 'string' ? FRAMEWORK_ERRORS[code] : undefined
  return known && new ProtocolError(known[0], known[2], { status: known[1] })
}

/** The `Retry-After` of an error that says when to try again. */
export function retryAfter(extra: JsonObject): string | undefined {
  const ms = extra.retry_after_ms
  return typeof ms === 'number' ? String(Math.max(1, Math.ceil(ms / 1000))) : undefined
}

/**
 * Whether a person looks at the answer: browsers that open a page say that they would like one, also as XHTML. Some libraries for programs
 * name HTML alone, as that of Java does by itself.
 */
function isBrowser({ accept = '' }: IncomingHttpHeaders): boolean {
  return /\btext\/html\b.*\bapplication\/xhtml\+xml\b/i.test(accept)
}

/** The error that a client gets. One other than `ProtocolError` is logged, and the client gets no details. */
export function refusalOf(
  thrown: unknown,
  request: Pick<FastifyRequest, 'id' | 'operation'>,
  log: Logger,
): ProtocolError {
  const error = toProtocolError(thrown)
  if (error !== undefined) return error
  log.error({ request_id: request.id, route: request.operation, err: thrown }, 'request failed')
  return new ProtocolError('M_UNKNOWN', `Something went wrong here (request ${request.id}).`)
}

/** Makes a page of an error, in a language that the browser takes. */
export type ErrorPage = (error: ProtocolError, acceptLanguage: string | undefined) => RawReply

/**
 * The one place that turns an error into HTTP. Browsers get the page of `errorPage`; all others, and those who ask where there is none, get
 * JSON.
 */
export function sendError(reply: FastifyReply, thrown: unknown, log: Logger, errorPage?: ErrorPage): FastifyReply {
  const error = refusalOf(thrown, reply.request, log)
  const seconds = retryAfter(error.extra)
  if (seconds !== undefined) reply.header('retry-after', seconds)
  partWith(reply)
  // The body that failed before its first byte may have been a compressed one.
  reply.removeHeader('content-encoding')
  reply.code(error.status)
  if (errorPage === undefined) return sendJson(reply, JSON.stringify(error))
  const asked = reply.request.headers
  if (!isBrowser(asked)) return sendJson(reply.header('vary', 'accept'), JSON.stringify(error))
  const { headers, body } = errorPage(error, asked['accept-language'])
  return sendWhole(reply.headers({ ...headers, vary: 'accept, accept-language' }), body as string)
}
