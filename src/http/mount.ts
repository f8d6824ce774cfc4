import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ProtocolError } from '../core/errors.ts'
import { readContentType } from '../core/media/content-disposition.ts'
import type { Dialect } from '../core/paths.ts'
import type { Claim } from '../domain/federation/signed-requests.ts'
import { MAX_ANONYMOUS_BODY_BYTES } from '../domain/limits.ts'
import type { Services } from '../domain/services.ts'
import type { Caller } from './caller.ts'
import type { Compression } from './compression.ts'
import type { Endpoint, Method, Reply } from './endpoint.ts'
import { type Answerer, type Operation, type OperationDeps, operationOf } from './operation.ts'
import { type FoundPlace, type RouteTable, routeTableOf } from './paths/route-table.ts'
import { BAD_QUERY } from './query.ts'
import { type ErrorPage, sendReply } from './reply.ts'
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
    /** Undefined as long as no endpoint is found for it. */
    handler: Handler | undefined
    /** Of the role, if people open its endpoints. */
    errorPage: ErrorPage | undefined
  }
}

/** The checks before the first byte of a body is read. */
function admissionOf({ endpoint, headers, enter, maxBodyBytes: most }: Operation, { intake }: MountDeps) {
  const { method, path, options } = endpoint
  const isGet = method === 'GET'
  const isBounded = !isGet && !options.streamed
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
    // Node.js takes it down at its end: now, rather than between the answers of many who wait for the same message.
    if (isGet && hasNoBody(raw)) raw.raw.resume()
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

/** Whether a request ends with its headers. */
function hasNoBody({ headers }: FastifyRequest): boolean {
  return headers['content-length'] === undefined && headers['transfer-encoding'] === undefined
}

/** A malformed content type is no reason to refuse a file. */
function takeAnyContentType({ raw: { headers } }: FastifyRequest): void {
  if (headers['content-type'] !== undefined) headers['content-type'] = readContentType(headers['content-type'])
}

/** The endpoints of a role, as a server is to serve them. */
export interface Api {
  /** The same array each time, for servers whose configuration is the same. */
  readonly endpointsOf: (services: Services) => readonly Endpoint[]
  readonly roleOf: (services: Services) => Role
}

export function apiOf<By extends Caller>(
  endpointsOf: Api['endpointsOf'],
  roleOf: (services: Services) => Role<By>,
): Api {
  return { endpointsOf, roleOf: roleOf as Api['roleOf'] }
}

const METHODS: Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/**
 * Serves all endpoints of these APIs under every path that they have, in both dialects. The framework has one route for them: to add each would
 * be half of a start. Which endpoint is meant is looked up in a table that servers share, and what serves it is made with its first request.
 */
export function mountApis(app: FastifyInstance, apis: readonly Api[], deps: MountDeps): void {
  const lists = apis.map(({ endpointsOf }) => endpointsOf(deps.services))
  const roles = apis.map(({ roleOf }) => roleOf(deps.services))
  const table = routeTableOf(lists)
  const mounted: (Mounted | undefined)[] = table.endpoints.map(() => undefined)

  function mountedOf({ number, endpoint, list }: RouteTable['endpoints'][number]): Mounted {
    const known = mounted[number] ?? mountOne(endpoint, roles[list]!, deps)
    mounted[number] = known
    return known
  }

  if (deps.batched !== undefined) {
    for (const each of table.endpoints) if (each.endpoint.options.batched) deps.batched(mountedOf(each).operation)
  }
  app.decorateRequest('caller', undefined).decorateRequest('claim', undefined)
  app.decorateRequest('handler', undefined).decorateRequest('errorPage', undefined)
  app.route({
    method: METHODS,
    url: '*',
    config: { known: table.known },
    onRequest(raw, reply, done) {
      let found: FoundPlace | undefined
      try {
        found = table.find(raw.method, raw.url)
      } catch (error) {
        done(error as Error)
        return
      }
      if (found === undefined) {
        done()
        return
      }
      const { place, params } = found
      const { admit, handlerIn, errorPage } = mountedOf(place)
      raw.params = params
      raw.handler = handlerIn(place.dialect ?? (params.root === '_proto' ? 'proto' : 'matrix'))
      raw.errorPage = errorPage
      admit(raw, reply, done)
    },
    handler(raw, reply) {
      if (raw.handler === undefined) reply.callNotFound()
      else raw.handler(raw, reply)
    },
  })
}

/** An endpoint as one server serves it. */
interface Mounted {
  readonly operation: Operation
  readonly admit: (raw: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void
  readonly errorPage: ErrorPage | undefined
  handlerIn(dialect: Dialect): Handler
}

function mountOne(endpoint: Endpoint, role: Role, deps: MountDeps): Mounted {
  const operation = operationOf(endpoint, role, deps)
  const handlers = new Map<Dialect, Handler>()
  return {
    operation,
    admit: admissionOf(operation, deps),
    errorPage: role.errorPage,
    handlerIn(dialect) {
      const known = handlers.get(dialect)
      if (known !== undefined) return known
      const handler = sending(operation.answererIn(dialect), deps.compression)
      handlers.set(dialect, handler)
      return handler
    },
  }
}

type Handler = (raw: FastifyRequest, reply: FastifyReply) => void

/** The one closure that serves every request to an endpoint in a dialect. */
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
