import type { Logger } from 'pino'
import { ProtocolError } from '../core/errors.ts'
import { isEventId, isRoomAlias, isRoomId, isServerName, isUserId } from '../core/ids.ts'
import type { Dialect } from '../core/paths.ts'
import { accountLocked, accountSuspended } from '../domain/accounts/requester.ts'
import type { Masquerade } from '../domain/appservices/callers.ts'
import type { SignedRequest } from '../domain/federation/signed-requests.ts'
import { MAX_TOKENS_AHEAD } from '../domain/limits/cluster.ts'
import { networkOf } from '../domain/network.ts'
import type { Services } from '../domain/services.ts'
import { addressOf } from './address.ts'
import { type BodyReader, bodyReader } from './body.ts'
import type { BodyIntake } from './body-intake.ts'
import type { Caller } from './caller.ts'
import type { AddressReader } from './client-address.ts'
import { cookieIn } from './cookie.ts'
import type { Endpoint, LimitName, Reply } from './endpoint.ts'
import { AHEAD } from './nodes/ahead.ts'
import { queryReader, type RawQuery, single } from './query.ts'
import {
  type Answering,
  type Arrived,
  MountedRequest,
  type PathParams,
  type RouteFacts,
  templateOf,
} from './request.ts'
import type { Role } from './role.ts'
import { challengeOf } from './uia.ts'

/** An endpoint as it is served, over whichever way its requests come: who may call it, what it checks, and what it answers. */
export interface Operation {
  readonly endpoint: Endpoint
  /** Sent with every answer, errors included, unless the answer has its own. */
  readonly headers: Role['headers']
  /** The longest body of a caller who may call. */
  readonly maxBodyBytes: number
  /** Finds the caller by the headers alone, so that no body of an unknown caller is read. Throws if there is none. */
  enter(arrived: Arrived): Promise<void> | undefined
  /** Answers a request that has entered, and whose body has come. */
  answererIn(dialect: Dialect): Answerer
}

/** It makes promises only for what it waits for. */
export type Answerer = (arrived: Arrived, answering: Answering) => Reply | Promise<Reply>

export interface OperationDeps {
  readonly services: Services
  readonly log: Logger
  readonly addressOf: AddressReader
  readonly intake: BodyIntake
  /** Whether other nodes may answer for this one, and ask for tokens of callers ahead. */
  readonly hasNodes?: boolean | undefined
  /** Takes a token of a caller, where that is not done by `services.rateLimits`. */
  readonly takeToken?: ((request: Arrived['raw'], limit: LimitName, key: string | number) => void) | undefined
}

export function operationOf<By extends Caller>(endpoint: Endpoint, role: Role<By>, deps: OperationDeps): Operation {
  const { log, addressOf, intake } = deps
  const parts = partsOf(endpoint, role, deps)
  const template = templateOf(endpoint.path)
  /** One for all paths of a dialect. */
  const answerers = new Map<Dialect, Answerer>()
  return {
    endpoint,
    headers: role.headers,
    maxBodyBytes: Math.max(role.maxBodyBytes, endpoint.options.maxBodyBytes ?? 0),
    enter: parts.enter,
    answererIn(dialect) {
      const known = answerers.get(dialect)
      if (known !== undefined) return known
      const route = { dialect, template, log, addressOf, intake, checkBody: parts.readBody?.check }
      const answerer = answererOf(endpoint, route, parts, deps)
      answerers.set(dialect, answerer)
      return answerer
    },
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
function tokenOf(raw: Arrived): string | undefined {
  const header = raw.headers.authorization
  if (header !== undefined && /^bearer /i.test(header)) return header.slice(7).trim()
  return single(raw.query as RawQuery, 'access_token')
}

/** The user and device that an application service acts for. The device parameter has a second name, from its proposal. */
function masqueradeOf({ query }: Arrived): Masquerade {
  const named = (name: string) => single(query as RawQuery, name) || undefined
  return { userId: named('user_id'), deviceId: named('device_id') ?? named('org.matrix.msc3202.device_id') }
}

interface Authenticator {
  /** Finds the caller by the headers alone, so that no body of an unknown caller is read. */
  enter(raw: Arrived): Promise<void> | undefined
  /** The caller, after the body has come: a signature covers the body too, and a token may have expired meanwhile. */
  callerOf(raw: Arrived): Caller | undefined | Promise<Caller | undefined>
}

/** All `Authorization` headers: a server may sign with several keys, and the framework keeps only one header. */
function authorizationsOf({ raw: { rawHeaders } }: Arrived): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && /^authorization$/i.test(rawHeaders[index - 1]!))
}

/** What a signature covers. */
function signedRequestOf(raw: Arrived, read: BodyReader | undefined): SignedRequest {
  const { method, body: bytes } = raw
  const isAbsent = read === undefined || !Buffer.isBuffer(bytes) || bytes.length === 0
  const body = isAbsent ? undefined : { bytes, read: () => read.parse(raw).value }
  return { method, uri: raw.raw.url ?? '', body }
}

function authenticator<By extends Caller>(endpoint: Endpoint, role: Role<By>, deps: OperationDeps): Authenticator {
  const { options } = endpoint
  const { auth } = options
  if (auth === 'none') return { enter: () => undefined, callerOf: () => undefined }
  if (auth === 'server') {
    const keyOf = (raw: Arrived) => networkOf(addressOf(raw, deps.addressOf))
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

  function admit(raw: Arrived, caller: By | undefined): By | Promise<By> {
    if (caller === undefined) throw new ProtocolError(unknownToken, 'The access token is not known here.')
    requireUnrestrained(caller)
    role.seen?.(caller, () => addressOf(raw, deps.addressOf), raw.headers['user-agent'])
    const admitted = role.admit?.(caller, endpoint)
    return admitted === undefined ? caller : admitted.then(() => caller)
  }

  function identify(raw: Arrived): Caller | undefined | Promise<Caller | undefined> {
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

/** What all paths of an endpoint share, so that each schema is compiled once. */
function partsOf<By extends Caller>(endpoint: Endpoint, role: Role<By>, deps: OperationDeps) {
  const { options, path } = endpoint
  return {
    ...authenticator(endpoint, role, deps),
    readParams: paramsReader(path),
    readQuery: options.query && queryReader(options.query, role.codes),
    readBody: bodyReader(endpoint, role.codes),
    perform: role.perform,
  }
}

type Parts = ReturnType<typeof partsOf>

/** Whose bucket a limited call takes from. */
function limitKey(caller: Caller | undefined, raw: Arrived, route: RouteFacts): string | number {
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

/** Makes the one closure that answers every request to an endpoint in a dialect. */
function answererOf(endpoint: Endpoint, route: RouteFacts, parts: Parts, deps: OperationDeps): Answerer {
  const { services } = deps
  const { options } = endpoint
  const { limited } = options
  const takeToken = deps.takeToken ?? ((_request, limit, key) => services.rateLimits.take(limit, key))
  const mayTakeAhead = deps.hasNodes === true && options.anywhere === true
  const { callerOf, readParams, readQuery, readBody, perform } = parts

  function answerTo(raw: Arrived, answering: Answering, requester: Caller | undefined): Reply | Promise<Reply> {
    if (limited !== undefined && !isUnlimited(requester)) {
      const key = limitKey(requester, raw, route)
      takeToken(raw.raw, limited, key)
      if (mayTakeAhead) takeAhead(raw, answering, limited, key)
    }
    const request = new MountedRequest(raw, answering, route, readParams(raw.params), requester)
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
  function takeAhead(raw: Arrived, answering: Answering, limit: LimitName, key: string | number): void {
    const asked = raw.headers[AHEAD]
    if (asked === undefined) return
    const count = Math.min(Number(asked) || 0, MAX_TOKENS_AHEAD)
    answering.header(AHEAD, services.rateLimits.takeAhead(limit, key, count))
  }

  async function unlessChallenged(request: MountedRequest): Promise<Reply> {
    return (await challengeOf(endpoint, request, services)) ?? run(request)
  }

  function run(request: MountedRequest): Reply | Promise<Reply> {
    if (!perform) return endpoint.handle(request, services)
    return perform(endpoint, request, () => endpoint.handle(request, services))
  }

  return (raw, answering) => {
    const caller = callerOf(raw)
    return caller instanceof Promise
      ? caller.then((requester) => answerTo(raw, answering, requester))
      : answerTo(raw, answering, caller)
  }
}
