import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { ProtocolError } from '../core/errors.ts'
import { isEventId, isRoomAlias, isRoomId, isServerName, isUserId } from '../core/ids.ts'
import { readContentType } from '../core/media/content-disposition.ts'
import { type Dialect, routesOf } from '../core/paths.ts'
import { accountLocked, accountSuspended } from '../domain/accounts/requester.ts'
import type { Masquerade } from '../domain/appservices/callers.ts'
import type { Claim, SignedRequest } from '../domain/federation/signed-requests.ts'
import { MAX_TOKENS_AHEAD } from '../domain/limits/cluster.ts'
import { MAX_ANONYMOUS_BODY_BYTES } from '../domain/limits.ts'
import { networkOf } from '../domain/network.ts'
import type { Services } from '../domain/services.ts'
import { addressOf } from './address.ts'
import { type BodyReader, bodyReader } from './body.ts'
import type { BodyIntake } from './body-intake.ts'
import type { Caller } from './caller.ts'
import type { AddressReader } from './client-address.ts'
import type { Compression } from './compression.ts'
import { cookieIn } from './cookie.ts'
import type { Endpoint, LimitName, Reply } from './endpoint.ts'
import { AHEAD } from './nodes/ahead.ts'
import { BAD_QUERY, queryReader, type RawQuery, single } from './query.ts'
import { isBrowser, sendError, sendReply } from './reply.ts'
import { MountedRequest, type PathParams, type RouteFacts, templateOf } from './request.ts'
import type { Role } from './role.ts'
import { challengeOf } from './uia.ts'

export interface MountDeps {
  readonly services: Services
  readonly log: Logger
  readonly addressOf: AddressReader
  readonly intake: BodyIntake
  readonly compression: Compression
  /** Whether other nodes may answer for this one, and ask for tokens of callers ahead. */
  readonly hasNodes?: boolean | undefined
  /** Takes a token of a caller, where that is not done by `services.rateLimits`. */
  readonly takeToken?: ((request: IncomingMessage, limit: LimitName, key: string | number) => void) | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller, by the headers. */
    caller: Caller | undefined
    /** The server that claims to have signed the request, by the headers. */
    claim: Claim | undefined
  }
}

const GRAMMARS: Readonly<Record<string, readonly [(value: string) => boolean, string]>> = {
  roomId: [isRoomId, 'a room id'],
  userId: [isUserId, 'a user id'],
  eventId: [isEventId, 'an event id'],
  roomAlias: [isRoomAlias, 'a room alias'],
  serverName: [isServerName, 'a server name'],
}

function paramNames(path: string): string[] {
  return [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1] as string).filter((name) => name !== 'root')
}

const NO_PARAMS: PathParams = Object.freeze({})

/** Reads the operation's parameters, and checks them against their grammar, and that nothing holds a NUL, which no table can store. */
function paramsReader(path: string): (raw: unknown) => PathParams {
  const names = paramNames(path)
  if (names.length === 0) return () => NO_PARAMS
  return (raw) => {
    const params: Record<string, string> = {}
    for (const name of names) {
      // A path of `also` may lack the last parameter.
      const value = (raw as PathParams)[name] ?? ''
      params[name] = value
      const grammar = GRAMMARS[name]
      if ((grammar !== undefined && !grammar[0](value)) || value.includes('\0')) {
        throw new ProtocolError('M_INVALID_PARAM', `The path's {${name}} is not ${grammar?.[1] ?? 'valid'}.`)
      }
    }
    return params
  }
}

/** The token of the `Authorization` header, or else of the query. */
function tokenOf(raw: FastifyRequest): string | undefined {
  const header = raw.headers.authorization
  if (header !== undefined && /^bearer /i.test(header)) return header.slice(7).trim()
  return single(raw.query as RawQuery, 'access_token')
}

/** The user and device that an application service acts for. The device parameter has a second name, from its proposal. */
function masqueradeOf({ query }: FastifyRequest): Masquerade {
  const named = (name: string) => single(query as RawQuery, name) || undefined
  return { userId: named('user_id'), deviceId: named('device_id') ?? named('org.matrix.msc3202.device_id') }
}

interface Authenticator {
  /** Finds the caller by the headers alone, so that no body of an unknown caller is read. */
  enter(raw: FastifyRequest): Promise<void> | undefined
  /** The caller, after the body has come: a signature covers the body too, and a token may have expired meanwhile. */
  callerOf(raw: FastifyRequest): Caller | undefined | Promise<Caller | undefined>
}

/** All `Authorization` headers: a server may sign with several keys, and the framework keeps only one header. */
function authorizationsOf({ raw: { rawHeaders } }: FastifyRequest): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && /^authorization$/i.test(rawHeaders[index - 1]!))
}

/** What a signature covers. */
function signedRequestOf(raw: FastifyRequest, read: BodyReader | undefined): SignedRequest {
  const { method, body: bytes } = raw
  const isAbsent = read === undefined || !Buffer.isBuffer(bytes) || bytes.length === 0
  const body = isAbsent ? undefined : { bytes, read: () => read.parse(raw).value }
  return { method, uri: raw.raw.url ?? '', body }
}

function authenticator<By extends Caller>(endpoint: Endpoint, role: Role<By>, deps: MountDeps): Authenticator {
  const { options } = endpoint
  const { auth } = options
  if (auth === 'none') return { enter: () => undefined, callerOf: () => undefined }
  if (auth === 'server') {
    const keyOf = (raw: FastifyRequest) => networkOf(addressOf(raw, deps.addressOf))
    const readBody = bodyReader(endpoint, role.codes)
    return {
      enter: async (raw) => {
        raw.claim = await role.claim!(authorizationsOf(raw), () => keyOf(raw))
      },
      callerOf: (raw) => role.confirm!(raw.claim!, signedRequestOf(raw, readBody), () => keyOf(raw)),
    }
  }
  const unknownToken = options.unknownToken ?? role.codes.unknownToken

  /** Refuses guests, suspended and locked users where the endpoint does. */
  function requireUnrestrained(caller: Caller): void {
    if (!('isGuest' in caller)) return
    if (caller.isLocked && !options.locked) throw accountLocked()
    if (caller.isGuest && !options.guests) {
      throw new ProtocolError('M_GUEST_ACCESS_FORBIDDEN', 'Guests may not do this.')
    }
    if (caller.isSuspended && !options.suspended && endpoint.method !== 'GET') throw accountSuspended()
  }

  function admit(raw: FastifyRequest, caller: By | undefined): By | Promise<By> {
    if (caller === undefined) throw new ProtocolError(unknownToken, 'The access token is not known here.')
    requireUnrestrained(caller)
    role.seen?.(caller, () => addressOf(raw, deps.addressOf), raw.headers['user-agent'])
    const admitted = role.admit?.(caller, endpoint)
    return admitted === undefined ? caller : admitted.then(() => caller)
  }

  function identify(raw: FastifyRequest): Caller | undefined | Promise<Caller | undefined> {
    const token = tokenOf(raw)
    if (auth === 'appservice-optional') return token === undefined ? undefined : role.appserviceOf?.(token)
    if (token === undefined || token === '') {
      if (auth === 'optional' || auth === 'identity-optional') return undefined
      throw new ProtocolError(role.codes.missingToken, 'This needs an access token.')
    }
    const cookie = (name: string) => cookieIn(raw.headers.cookie, name)
    const found = role.authenticate(token, () => masqueradeOf(raw), cookie)
    return found instanceof Promise ? found.then((caller) => admit(raw, caller)) : admit(raw, found)
  }

  return {
    enter(raw) {
      const found = identify(raw)
      if (found instanceof Promise) {
        return found.then((caller) => {
          raw.caller = caller
        })
      }
      raw.caller = found
      return undefined
    },
    callerOf: (raw) => (raw.isLate ? identify(raw) : raw.caller),
  }
}

/** The parts that all paths of an endpoint share, so that each schema is compiled once. */
function partsOf<By extends Caller>(endpoint: Endpoint, role: Role<By>, deps: MountDeps) {
  const { options, path } = endpoint
  return {
    headers: role.headers,
    ...authenticator(endpoint, role, deps),
    readParams: paramsReader(path),
    readQuery: options.query && queryReader(options.query, role.codes),
    readBody: bodyReader(endpoint, role.codes),
    perform: role.perform,
  }
}

type Parts = ReturnType<typeof partsOf>

/** Whose bucket a limited call takes from. */
function limitKey(caller: Caller | undefined, raw: FastifyRequest, route: RouteFacts): string | number {
  if (caller === undefined) return networkOf(addressOf(raw, route.addressOf))
  if ('userNid' in caller) return caller.userNid
  if ('server' in caller) return caller.server
  if ('hosted' in caller) return caller.hosted.id
  if ('appservice' in caller) return caller.appservice!.id
  return 'userId' in caller ? caller.userId : caller.name
}

function isUnlimited(caller: Caller | undefined): boolean {
  return caller !== undefined && 'isUnlimited' in caller && caller.isUnlimited === true
}

/** Makes the one closure that serves every request to a mounted path. It makes promises only for what it waits for. */
function handlerOf(endpoint: Endpoint, route: RouteFacts, parts: Parts, deps: MountDeps) {
  const { services, compression } = deps
  const { options } = endpoint
  const { limited } = options
  const takeToken = deps.takeToken ?? ((_request, limit, key) => services.rateLimits.take(limit, key))
  const mayTakeAhead = deps.hasNodes === true && options.anywhere === true
  const { callerOf, readParams, readQuery, readBody, perform } = parts

  function answerTo(raw: FastifyRequest, reply: FastifyReply, requester: Caller | undefined): Reply | Promise<Reply> {
    if (limited !== undefined && !isUnlimited(requester)) {
      const key = limitKey(requester, raw, route)
      takeToken(raw.raw, limited, key)
      if (mayTakeAhead) takeAhead(raw, reply, limited, key)
    }
    const request = new MountedRequest(raw, reply, route, readParams(raw.params), requester)
    if (readQuery) request.query = readQuery(raw.query as RawQuery)
    if (readBody) {
      const body = readBody.parse(raw)
      readBody.check(body)
      request.body = body.value
      request.bodyOffence = body.offence
    }
    return options.uia ? unlessChallenged(request) : run(request)
  }

  /** Another node passed this request on, and would answer the next ones of the caller itself. */
  function takeAhead(raw: FastifyRequest, reply: FastifyReply, limit: LimitName, key: string | number): void {
    const asked = raw.headers[AHEAD]
    if (asked === undefined) return
    const count = Math.min(Number(asked) || 0, MAX_TOKENS_AHEAD)
    reply.header(AHEAD, services.rateLimits.takeAhead(limit, key, count))
  }

  async function unlessChallenged(request: MountedRequest): Promise<Reply> {
    return (await challengeOf(endpoint, request, services)) ?? run(request)
  }

  function run(request: MountedRequest): Reply | Promise<Reply> {
    if (!perform) return endpoint.handle(request, services)
    return perform(endpoint, request, () => endpoint.handle(request, services))
  }

  return (raw: FastifyRequest, reply: FastifyReply): void => {
    const send = (answer: Reply) => sendReply(reply, answer, compression)
    const caller = callerOf(raw)
    const answer =
      caller instanceof Promise
        ? caller.then((requester) => answerTo(raw, reply, requester))
        : answerTo(raw, reply, caller)
    if (answer instanceof Promise) answer.then(send).catch((error) => reply.send(error))
    else send(answer)
  }
}

/** The checks before the first byte of a body is read. */
function admissionOf<By extends Caller>(
  { method, path, options }: Endpoint,
  role: Role<By>,
  parts: Parts,
  deps: MountDeps,
) {
  const { intake } = deps
  const { headers, enter } = parts
  const isBounded = method !== 'GET' && !options.streamed
  const take = options.body === undefined ? intake.limit : intake.expect
  const most = Math.max(role.maxBodyBytes, options.maxBodyBytes ?? 0)

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
    for (const endpoint of endpointsOf(deps.services)) mountOne(app, endpoint, role, deps)
    done()
  }
}

/** Browsers show JSON to people who can do nothing with it. */
function answerBrowsers(app: FastifyInstance, errorPage: NonNullable<Role['errorPage']>, { log }: MountDeps): void {
  app.setErrorHandler((error, { headers }, reply) => {
    const pageOf = (refusal: ProtocolError) => errorPage(refusal, headers['accept-language'])
    return sendError(reply, error, log, isBrowser(headers) ? pageOf : undefined)
  })
}

function mountOne<By extends Caller>(app: FastifyInstance, endpoint: Endpoint, role: Role<By>, deps: MountDeps): void {
  const { log, addressOf, intake } = deps
  const parts = partsOf(endpoint, role, deps)
  const template = templateOf(endpoint.path)
  const onRequest = admissionOf(endpoint, role, parts, deps)
  /** One handler for all paths of a dialect. */
  const handlers = new Map<Dialect, Handler>()
  function handlerIn(dialect: Dialect) {
    const known = handlers.get(dialect)
    if (known !== undefined) return known
    const route = { dialect, template, log, addressOf, intake, checkBody: parts.readBody?.check }
    const handler = handlerOf(endpoint, route, parts, deps)
    handlers.set(dialect, handler)
    return handler
  }
  for (const specification of [endpoint.path, ...(endpoint.options.also ?? [])]) {
    for (const { dialect, path: url } of routesOf(specification)) {
      const handler =
        dialect === undefined ? handlerByRoot(handlerIn('matrix'), handlerIn('proto')) : handlerIn(dialect)
      app.route({ method: endpoint.method, url, onRequest, handler })
    }
  }
}

type Handler = ReturnType<typeof handlerOf>

/** For a route of both dialects. */
function handlerByRoot(matrix: Handler, proto: Handler): Handler {
  return (raw, reply) => ((raw.params as PathParams).root === '_proto' ? proto : matrix)(raw, reply)
}
