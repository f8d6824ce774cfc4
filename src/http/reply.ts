import type { ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { type Errcode, ProtocolError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import { writeJson } from '../core/large-integers.ts'
import { RawReply, type Reply } from './endpoint.ts'
import { partWith } from './parting.ts'

const JSON_TYPE = 'application/json'

const asItIs = (text: string): string => text

/** Sends JSON text. The serialiser of our own keeps the framework from adding a `charset`, which JSON does not have. */
export function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.serializer(asItIs).header('content-type', JSON_TYPE).send(text)
}

/** Sends what a handler returned. */
export function sendReply(reply: FastifyReply, answer: Reply): FastifyReply {
  if (!(answer instanceof RawReply)) return sendJson(reply, writeJson(answer))
  if (typeof answer.body === 'string') reply.serializer(asItIs)
  if (answer.closed) whenClosed(reply.raw, answer.closed)
  return reply.code(answer.status).header('content-type', JSON_TYPE).headers(answer.headers).send(answer.body)
}

function whenClosed(response: ServerResponse, listener: () => void): void {
  if (response.closed) listener()
  else response.once('close', listener)
}

/** Our codes and texts for the framework's own errors. */
const FRAMEWORK_ERRORS: Readonly<Record<string, readonly [Errcode, number, string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['M_NOT_JSON', 400, 'The Content-Type header is malformed.'],
  FST_ERR_BAD_URL: ['M_INVALID_PARAM', 400, 'The path holds a broken percent escape.'],
  FST_ERR_MAX_PARAM_LENGTH: ['M_INVALID_PARAM', 400, 'A part of the path is too long.'],
}

function toProtocolError(error: unknown): ProtocolError | undefined {
  if (error instanceof ProtocolError) return error
  if (!(error instanceof Error)) return undefined
  const { code } = error as { code?: unknown }
  const known = typeof code === 'string' ? FRAMEWORK_ERRORS[code] : undefined
  return known && new ProtocolError(known[0], known[2], { status: known[1] })
}

function retryAfter(extra: JsonObject): string | undefined {
  const ms = extra.retry_after_ms
  return typeof ms === 'number' ? String(Math.max(1, Math.ceil(ms / 1000))) : undefined
}

/** The declared path of the operation. The requested path may hold ids and tokens. */
export function routeOf(request: FastifyRequest): string {
  const config = request.routeOptions.config as { operation?: string } | undefined
  return config?.operation ?? 'unmatched'
}

/** The one place that turns an error into HTTP. An error other than `ProtocolError` is logged, and the client gets no details. */
export function sendError(reply: FastifyReply, thrown: unknown, log: Logger): FastifyReply {
  let error = toProtocolError(thrown)
  if (error === undefined) {
    const { request } = reply
    log.error({ request_id: request.id, route: routeOf(request), err: thrown }, 'request failed')
    error = new ProtocolError('M_UNKNOWN', `Something went wrong here (request ${request.id}).`)
  }
  const seconds = retryAfter(error.extra)
  if (seconds !== undefined) reply.header('retry-after', seconds)
  partWith(reply)
  return sendJson(reply.code(error.status), JSON.stringify(error))
}
