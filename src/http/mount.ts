import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { ProtocolError } from '../core/errors.ts'
import { isEventId, isRoomAlias, isRoomId, isUserId } from '../core/ids.ts'
import { expandPath } from '../core/paths.ts'
import type { Requester } from '../domain/accounts/requester.ts'
import type { Services } from '../domain/services.ts'
import { parseBody } from './body.ts'
import { type AddressReader, limitKeyOf } from './client-address.ts'
import type { Endpoint } from './endpoint.ts'
import { BAD_QUERY, queryReader, type RawQuery, single } from './query.ts'
import { sendReply } from './reply.ts'
import { addressOf, MountedRequest, type PathParams, type RouteFacts, templateOf } from './request.ts'
import type { Role } from './role.ts'
import { challengeOf } from './uia.ts'
import { type Offences, validator } from './validate.ts'

export interface MountDeps {
  readonly services: Services
  readonly log: Logger
  readonly addressOf: AddressReader
}

const GRAMMARS: Readonly<Record<string, readonly [(value: unknown) => boolean, string]>> = {
  roomId: [isRoomId, 'a room id'],
  userId: [isUserId, 'a user id'],
  eventId: [isEventId, 'an event id'],
  roomAlias: [isRoomAlias, 'a room alias'],
}

function paramNames(path: string): string[] {
  return [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1] as string).filter((name) => name !== 'root')
}

/** Checks path parameters against their grammar, and that nothing holds a NUL, which no table can store. */
function paramsReader(path: string): (raw: unknown) => PathParams {
  const names = paramNames(path)
  return (raw) => {
    const params = raw as Record<string, string>
    for (const name of names) {
      // A path of `also` may lack the last parameter.
      const value = params[name] ?? ''
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

type Authenticator = (raw: FastifyRequest) => Requester | undefined | Promise<Requester | undefined>

function authenticator({ options }: Endpoint, role: Role, deps: MountDeps): Authenticator {
  if (options.auth === 'none') return () => undefined
  const { codes } = role

  function admit(raw: FastifyRequest, requester: Requester | undefined): Requester {
    if (requester === undefined) throw new ProtocolError(codes.unknownToken, 'The access token is not known here.')
    if (requester.isGuest && !options.guests) {
      throw new ProtocolError('M_GUEST_ACCESS_FORBIDDEN', 'Guests may not do this.')
    }
    role.seen?.(requester, () => addressOf(raw, deps.addressOf), raw.headers['user-agent'])
    return requester
  }

  return (raw) => {
    const token = tokenOf(raw)
    if (token === undefined || token === '') {
      if (options.auth === 'optional') return undefined
      throw new ProtocolError(codes.missingToken, 'This needs an access token.')
    }
    const found = role.authenticate(token)
    return found instanceof Promise ? found.then((requester) => admit(raw, requester)) : admit(raw, found)
  }
}

/** What all paths of an endpoint share, so that a schema is compiled once however many paths there are. */
function partsOf(endpoint: Endpoint, role: Role, deps: MountDeps) {
  const { options, path } = endpoint
  const offences: Offences = { missing: role.codes.missingParam, wrongType: 'M_BAD_JSON', what: 'Key' }
  return {
    authenticate: authenticator(endpoint, role, deps),
    readParams: paramsReader(path),
    readQuery: options.query && queryReader(options.query, role.codes),
    checkBody: options.body && validator(options.body, offences),
  }
}

/** Makes the one closure that serves every request to a mounted path. */
function handlerOf(endpoint: Endpoint, route: RouteFacts, parts: ReturnType<typeof partsOf>, services: Services) {
  const { options } = endpoint
  const { limited } = options
  const { authenticate, readParams, readQuery, checkBody } = parts

  return async (raw: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (raw.query === BAD_QUERY) throw new ProtocolError('M_INVALID_PARAM', 'The query holds a broken percent escape.')
    const admitted = authenticate(raw)
    const requester = admitted instanceof Promise ? await admitted : admitted
    if (limited !== undefined) {
      services.rateLimits.take(limited, requester?.userNid ?? limitKeyOf(addressOf(raw, route.addressOf)))
    }
    const request = new MountedRequest(raw, reply, route, readParams(raw.params), requester)
    if (readQuery) request.query = readQuery(raw.query as RawQuery)
    if (checkBody) {
      const { value, offence } = parseBody(raw.body, options.bodyOptional === true)
      checkBody(value)
      request.body = value
      request.bodyOffence = offence
    }
    if (options.uia) {
      const challenge = await challengeOf(endpoint, request, services)
      if (challenge) return sendReply(reply, challenge)
    }
    return sendReply(reply, await endpoint.handle(request, services))
  }
}

/** Registers a role's endpoints under every path that serves them, in both dialects. */
export function mount(app: FastifyInstance, endpoints: readonly Endpoint[], role: Role, deps: MountDeps): void {
  const { services, log, addressOf } = deps
  for (const endpoint of endpoints) {
    const parts = partsOf(endpoint, role, deps)
    const template = templateOf(endpoint.path)
    for (const specification of [endpoint.path, ...(endpoint.options.also ?? [])]) {
      for (const { dialect, path: url } of expandPath(specification)) {
        const route = { dialect, template, log, addressOf }
        app.route({
          method: endpoint.method,
          url,
          bodyLimit: role.maxBodyBytes,
          config: { operation: endpoint.path },
          handler: handlerOf(endpoint, route, parts, services),
        })
      }
    }
  }
}
