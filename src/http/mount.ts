import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import { ProtocolError } from '../core/errors.ts'
import { readContentType } from '../core/media/content-disposition.ts'
import { routesOf, usualPathOf } from '../core/paths.ts'
import type { Claim } from '../domain/federation/signed-requests.ts'
import { MAX_ANONYMOUS_BODY_BYTES } from '../domain/limits.ts'
import type { Services } from '../domain/services.ts'
import type { Caller } from './caller.ts'
import type { Compression } from './compression.ts'
import type { Endpoint, Reply } from './endpoint.ts'
import { type Answerer, type Operation, type OperationDeps, operationOf } from './operation.ts'
import { BAD_QUERY } from './query.ts'
import { type ErrorPage, sendError, sendReply } from './reply.ts'
import type { PathParams } from './request.ts'
import type { Role } from './role.ts'

export interface MountDeps extends OperationDeps {
  readonly compression: Compression
  /** Also called with each operation whose requests may come from another node in batches. */
  readonly batched?: ((operation: Operation) => void) | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller, by the headers. */
    caller: Caller | undefined
    /** The server that claims to have signed the request, by the headers. */
    claim: Claim | undefined
  }
}

/** The checks before the first byte of a body is read. */
function admissionOf({ endpoint, headers, enter, maxBodyBytes: most }: Operation, { intake }: MountDeps) {
  const { method, path, options } = endpoint
  const isBounded = method !== 'GET' && !options.streamed
  const take = options.body === undefined ? intake.limit : intake.expect

  function expect(raw: FastifyRequest, reply: FastifyReply): void {
    const isKnown = raw.caller !== undefined || raw.claim !== undefined
    if (isBounded) take(raw, isKnown ? most : Math.min(most, MAX_ANONYMOUS_BODY_BYTES), reply)
  }

  function admit(raw: FastifyRequest, reply: FastifyReply): Promise<void> | undefined {
    if (raw.query === BAD_QUERY) throw new ProtocolError('M_INVALID_PARAM', 'The query holds a broken percent escape.')
    const entering = enter(raw)
    if (entering !== undefined) return entering.then(() => expect(raw, reply))
    expect(raw, reply)
    return undefined
  }

  return (raw: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    raw.operation = path
    if (headers !== undefined) reply.headers(headers)
    if (options.streamed) takeAnyContentType(raw)
    let admitting: Promise<void> | undefined
    try {
      admitting = admit(raw, reply)
    } catch (error) {
      done(error as Error)
      return
    }
    // No promise unless it is needed: most callers are in the cache.
    if (admitting === undefined) done()
    else admitting.then(() => done(), done)
  }
}

/** A malformed content type is no reason to refuse a file. */
function takeAnyContentType({ raw: { headers } }: FastifyRequest): void {
  if (headers['content-type'] !== undefined) headers['content-type'] = readContentType(headers['content-type'])
}

/** A Fastify plugin that serves a role's endpoints under every path that they have, in both dialects. */
export function rolePlugin<By extends Caller>(
  endpointsOf: (services: Services) => readonly Endpoint[],
  roleOf: (services: Services) => Role<By>,
): FastifyPluginCallback<MountDeps> {
  return (app, deps, done) => {
    app.decorateRequest('caller', undefined).decorateRequest('claim', undefined)
    const role = roleOf(deps.services)
    if (role.errorPage) answerBrowsers(app, role.errorPage, deps)
    mountedAtOnce(app, () => {
      for (const endpoint of endpointsOf(deps.services)) mountOne(app, endpoint, role, deps)
    })
    done()
  }
}

/**
 * The framework makes of each route a plugin that finishes it once what was registered before has loaded: a good part of a start. Nothing is
 * registered between these routes, and their error handler is set before, so each is finished as it is added.
 */
function mountedAtOnce(app: FastifyInstance, mount: () => void): void {
  const { after } = app
  const now = (finish: (error: Error | null, done: () => void) => void) => {
    finish(null, () => {})
    return app
  }
  app.after = now as typeof after
  try {
    mount()
  } finally {
    app.after = after
  }
}

/** Browsers show JSON to people who can do nothing with it. */
function answerBrowsers(app: FastifyInstance, errorPage: ErrorPage, { log }: MountDeps): void {
  app.setErrorHandler((error, _request, reply) => sendError(reply, error, log, errorPage))
}

function mountOne<By extends Caller>(app: FastifyInstance, endpoint: Endpoint, role: Role<By>, deps: MountDeps): void {
  const operation = operationOf(endpoint, role, deps)
  if (endpoint.options.batched) deps.batched?.(operation)
  const onRequest = admissionOf(operation, deps)
  const handlers = new Map<Answerer, Handler>()
  function handlerOf(answerer: Answerer): Handler {
    const known = handlers.get(answerer) ?? sending(answerer, deps.compression)
    handlers.set(answerer, known)
    return known
  }
  for (const specification of [endpoint.path, ...(endpoint.options.also ?? [])]) {
    for (const { dialect, path: url } of routesOf(specification)) {
      const handler =
        dialect === undefined
          ? handlerByRoot(handlerOf(operation.answererIn('matrix')), handlerOf(operation.answererIn('proto')))
          : handlerOf(operation.answererIn(dialect))
      app.route({ method: endpoint.method, url, onRequest, handler })
    }
  }
  if (!endpoint.options.often) return
  const handler = handlerOf(operation.answererIn('matrix'))
  app.route({ method: endpoint.method, url: usualPathOf(endpoint.path), onRequest, handler })
}

type Handler = (raw: FastifyRequest, reply: FastifyReply) => void

/** The one closure that serves every request to a mounted path. */
function sending(answerer: Answerer, compression: Compression): Handler {
  return (raw, reply) => {
    const answer = answerer(raw, reply)
    if (answer instanceof Promise) sendLater(reply, answer, compression)
    else sendReply(reply, answer, compression)
  }
}

/** One promise and no more: a sync holds what is made here as long as it waits. */
function sendLater(reply: FastifyReply, answer: Promise<Reply>, compression: Compression): void {
  answer.then(
    (made) => {
      try {
        sendReply(reply, made, compression)
      } catch (error) {
        reply.send(error)
      }
    },
    (error) => {
      reply.send(error)
    },
  )
}

/** For a route of both dialects. */
function handlerByRoot(matrix: Handler, proto: Handler): Handler {
  return (raw, reply) => ((raw.params as PathParams).root === '_proto' ? proto : matrix)(raw, reply)
}
