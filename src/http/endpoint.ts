import type { Readable } from 'node:stream'
import type { Config } from '../config/schema.ts'
import type { Errcode } from '../core/errors.ts'
import type { EventId, RoomAlias, RoomId, ServerName, UserId } from '../core/ids.ts'
import type { JsonObject } from '../core/json.ts'
import { type Shape, type Static, Type } from '../core/shapes.ts'
import type { UiaFlow, UiaProof } from '../domain/accounts/interactive-auth.ts'
import type { Requester } from '../domain/accounts/requester.ts'
import type { Operator } from '../domain/admin/operator.ts'
import type { AppserviceRequester, HostedRequester } from '../domain/appservices/requester.ts'
import type { PeerRequester } from '../domain/federation/requester.ts'
import type { IdentityRequester } from '../domain/identity/requester.ts'
import type { Services } from '../domain/services.ts'
import type { EndpointRequest } from './request.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** `METHOD path`, the specification's own line: `PUT C/rooms/{roomId}/send/{eventType}/{txnId}`. */
export type EndpointLine = `${Method} ${string}`

/**
 * Who may call: anybody, anybody (a token that is sent must be good), anybody (an application service is known by its own token), or
 * the holder of a token; of an account's, of an administrator's, of the identity service's, or of a service in this process; or a server that signs its requests.
 */
export type EndpointAuth =
  | 'none'
  | 'optional'
  | 'appservice-optional'
  | 'user'
  | 'admin'
  | 'identity-optional'
  | 'identity'
  | 'hosted'
  | 'server'

/** The buckets of `rate_limits` in the configuration. */
export type LimitName = Exclude<keyof Config['rate_limits'], 'enabled'>

/** The types of path parameters whose grammar is checked before the handler runs; all others are strings. */
interface TypedParams {
  roomId: RoomId
  userId: UserId
  eventId: EventId
  roomAlias: RoomAlias
  serverName: ServerName
}

type ParamName<Line extends string> = Line extends `${string}{${infer Name}}${infer Rest}`
  ? Exclude<Name, 'root'> | ParamName<Rest>
  : never

export type ParamsOf<Line extends string> = {
  readonly [Name in ParamName<Line>]: Name extends keyof TypedParams ? TypedParams[Name] : string
}

/** What a schema describes; nothing at all where there is none. */
export type Described<Schema extends Shape | undefined> = Schema extends Shape ? Static<Schema> : undefined

interface Requesters {
  readonly none: undefined
  readonly optional: Requester | undefined
  readonly 'appservice-optional': AppserviceRequester | undefined
  readonly user: Requester
  readonly admin: Operator
  readonly 'identity-optional': IdentityRequester | undefined
  readonly identity: IdentityRequester
  readonly hosted: HostedRequester
  readonly server: PeerRequester
}

/** A request as a handler of this declaration sees it. */
export type RequestOf<
  Line extends string,
  Auth extends EndpointAuth,
  Query extends Shape | undefined,
  Body extends Shape | undefined,
> = EndpointRequest<ParamsOf<Line>, Described<Query>, Described<Body>, Requesters[Auth]>

export interface EndpointOptions<
  Line extends EndpointLine,
  Auth extends EndpointAuth,
  Query extends Shape | undefined,
  Body extends Shape | undefined,
> {
  readonly auth: Auth
  /** Guests may call it too. Without this they get 403 `M_GUEST_ACCESS_FORBIDDEN`. */
  readonly guests?: true
  /** Suspended users may call it too, as they may all that only reads (GET). Without this they get 403 `M_USER_SUSPENDED`. */
  readonly suspended?: true
  /** It waits for others, or is long: requests of the same server do not wait for it, nor it for them. */
  readonly outOfTurn?: true
  /** Users whose account is locked may call it too. Without this they get 401 `M_USER_LOCKED`. */
  readonly locked?: true
  /** Users of the identity service may call it before they have accepted its terms. */
  readonly beforeTerms?: true
  /** What it shows is a user's own: reading it goes on the record of operators' acts, as all does that is not a GET. */
  readonly recorded?: true
  /** The code for a token that nobody holds, where it is not the one of the role. */
  readonly unknownToken?: Errcode
  /** The bucket that one call takes from: the user's, or the address's where there is no user. */
  readonly limited?: LimitName
  /** Query parameters, coerced to the types written here. A parameter of array type may repeat; an optional one that is empty is absent. */
  readonly query?: Query
  /** The body: no coercion, no defaults, unknown keys kept. An optional key that is null is absent where its shape knows no null. */
  readonly body?: Body
  /** The body may be so long, where the role's own cap is too low. It is then read only from those who may call. */
  readonly maxBodyBytes?: number
  /** An empty body counts as `{}`. */
  readonly bodyOptional?: true
  /** The body is not read for the handler, which finds it in `request.stream` and bounds it. */
  readonly streamed?: true
  /** The body may be a form instead, or be missing (or null) while the query holds its keys; texts are read as the types in `body`. */
  readonly forms?: true
  /** Other paths of the same operation. A parameter that such a path lacks is the empty string. */
  readonly also?: readonly string[]
  /** Checks made before user-interactive authentication, and the flows it may take; undefined when this call needs none. */
  readonly uia?: (
    request: RequestOf<Line, Auth, Query, Body>,
    services: Services,
  ) => Promise<readonly UiaFlow[] | undefined>
}

/** An answer that is not a plain 200 with a JSON object. */
export class RawReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | string | Readable
  /** Called when the caller has it, or is gone. */
  readonly closed: (() => void) | undefined

  constructor(
    status: number,
    headers: Readonly<Record<string, string>>,
    body: Buffer | string | Readable,
    closed?: () => void,
  ) {
    this.status = status
    this.headers = headers
    this.body = body
    this.closed = closed
  }
}

/** Bytes or text that are ready to send, or come as they are read; JSON unless the headers say otherwise. */
export function rawReply(parts: {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Buffer | string | Readable
  readonly closed?: () => void
}): RawReply {
  return new RawReply(parts.status ?? 200, parts.headers ?? {}, parts.body, parts.closed)
}

/** A JSON object (or ready bytes). */
export type Reply = object | RawReply

/** A declared endpoint with its types put aside, as role lists hold it. */
export interface Endpoint {
  readonly method: Method
  /** The path as the specification writes it: `C/rooms/{roomId}/send/{eventType}/{txnId}`. */
  readonly path: string
  readonly options: {
    readonly auth: EndpointAuth
    readonly guests?: true
    readonly suspended?: true
    readonly outOfTurn?: true
    readonly locked?: true
    readonly beforeTerms?: true
    readonly recorded?: true
    readonly unknownToken?: Errcode
    readonly limited?: LimitName
    readonly query?: Shape | undefined
    readonly body?: Shape | undefined
    readonly maxBodyBytes?: number
    readonly bodyOptional?: true
    readonly streamed?: true
    readonly forms?: true
    readonly also?: readonly string[]
    uia?(request: EndpointRequest, services: Services): Promise<readonly UiaFlow[] | undefined>
  }
  handle(request: EndpointRequest, services: Services): Promise<Reply> | Reply
}

/** Any JSON object, kept as it came: `body: AnyObject`. */
export const AnyObject = Type.Unsafe<JsonObject>({ type: 'object' })

const NOT_NULL = { not: { type: 'null' } }

/** An object whose handler reads single keys of it (`auth`, `identifier`): keys that are null are absent, also one level further down. */
export const Details = Type.Unsafe<JsonObject>({
  type: 'object',
  additionalProperties: { ...NOT_NULL, additionalProperties: NOT_NULL },
})

/** Declares an endpoint: the specification's line, what a call must satisfy, and what it does. */
export function endpoint<
  const Line extends EndpointLine,
  const Auth extends EndpointAuth,
  const Query extends Shape | undefined = undefined,
  const Body extends Shape | undefined = undefined,
>(
  line: Line,
  options: EndpointOptions<Line, Auth, Query, Body>,
  handle: (request: RequestOf<Line, Auth, Query, Body>, services: Services) => Promise<Reply> | Reply,
): Endpoint {
  const space = line.indexOf(' ')
  const method = line.slice(0, space) as Method
  return { method, path: line.slice(space + 1), options, handle } as Endpoint
}

export type { UiaFlow, UiaProof }
