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
import type { StandbyServices } from '../domain/standby/services.ts'
import type { EndpointRequest } from './request.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** `METHOD path`, the specification's own line: `PUT C/rooms/{roomId}/send/{eventType}/{txnId}`. */
export type EndpointLine = `${Method} ${string}`

/**
 * Who may call. `none`: anybody. `optional`, `identity-optional`: anybody, but a token must be valid if one is sent. `appservice-optional`:
 * anybody; an application service is recognised by its token. `user`, `admin`, `identity`, `hosted`: the holder of a token of an account,
 * of an administrator, of the identity service, or for a service in this process. `server`: a server that signs its requests.
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
  Anywhere extends true | undefined = undefined,
> {
  readonly auth: Auth
  /**
   * A node that stands by may answer it: what it reads is in rows, and it changes nothing. The handler gets no more than such a node
   * has.
   */
  readonly anywhere?: Anywhere
  /**
   * Its requests are many and short: those that a node passes on which stands by travel together (docs/nodes.md). Done twice, each must be
   * as if it were done once. The handler sees the caller, the path, the body and the address; it gives a JSON object.
   */
  readonly batched?: true
  /** What clients ask most of all: the router knows its usual path as it is. It has no parameters. */
  readonly often?: true
  /** Guests may call it too. Without this they get 403 `M_GUEST_ACCESS_FORBIDDEN`. */
  readonly guests?: true
  /** Suspended users may call it too, as they may all that only reads (GET). Without this they get 403 `M_USER_SUSPENDED`. */
  readonly suspended?: true
  /** A slow endpoint: it takes no turn in the queue of the calling server's requests. */
  readonly outOfTurn?: true
  /** Users whose account is locked may call it too. Without this they get 401 `M_USER_LOCKED`. */
  readonly locked?: true
  /** Users of the identity service may call it before they have accepted its terms. */
  readonly beforeTerms?: true
  /** It shows private data of a user: the call is recorded as an operator's act, although it is a GET. */
  readonly recorded?: true
  /** It cannot be undone, or gives power over accounts: in the console, whoever does it must have proved a short time ago who they are. */
  readonly grave?: true
  /** The code for an unknown token, if it differs from the role's. */
  readonly unknownToken?: Errcode
  /** The rate limit for calls, by user, or by address if there is no user. */
  readonly limited?: LimitName
  /** Query parameters, coerced to the types given here. A parameter of array type may repeat; an empty optional one counts as absent. */
  readonly query?: Query
  /** The body: no coercion, no defaults, unknown keys kept. An optional key that is null counts as absent, unless its shape allows null. */
  readonly body?: Body
  /** Clients send the same body again and again: what was read of it is kept, and the handler must not change it. */
  readonly bodiesRepeat?: true
  /** The longest body, if the role's limit is too low. A longer body is read only from callers who may call. */
  readonly maxBodyBytes?: number
  /** An empty body counts as `{}`. */
  readonly bodyOptional?: true
  /** The handler reads the body from `request.stream` itself, and limits it. */
  readonly streamed?: true
  /** The body may be a form instead, or be missing (or null) with its keys in the query; texts are converted to the types in `body`. */
  readonly forms?: true
  /** Other paths of the same operation. A parameter that such a path lacks is the empty string. */
  readonly also?: readonly string[]
  /** Runs checks before user-interactive authentication and gives its flows; undefined if this call needs none. */
  readonly uia?: (
    request: RequestOf<Line, Auth, Query, Body>,
    services: Services,
  ) => Promise<readonly UiaFlow[] | undefined>
}

/** A header with several values is sent as often. */
export type ReplyHeaders = Readonly<Record<string, string | string[]>>

/** An answer that is not a plain 200 with a JSON object. */
export class RawReply {
  readonly status: number
  readonly headers: ReplyHeaders
  readonly body: Buffer | string | Readable
  /** Called when the answer is sent or the caller is gone. */
  readonly closed: (() => void) | undefined

  constructor(status: number, headers: ReplyHeaders, body: Buffer | string | Readable, closed?: () => void) {
    this.status = status
    this.headers = headers
    this.body = body
    this.closed = closed
  }
}

/** An answer of ready bytes or text, or of a stream; JSON unless the headers say otherwise. */
export function rawReply(parts: {
  readonly status?: number
  readonly headers?: ReplyHeaders
  readonly body: Buffer | string | Readable
  readonly closed?: () => void
}): RawReply {
  return new RawReply(parts.status ?? 200, parts.headers ?? {}, parts.body, parts.closed)
}

/** A JSON object (or ready bytes). */
export type Reply = object | RawReply

/** A declared endpoint without its types, for the lists of roles. */
export interface Endpoint {
  readonly method: Method
  /** The path as the specification writes it: `C/rooms/{roomId}/send/{eventType}/{txnId}`. */
  readonly path: string
  readonly options: {
    readonly auth: EndpointAuth
    readonly anywhere?: true | undefined
    readonly batched?: true
    readonly often?: true
    readonly guests?: true
    readonly suspended?: true
    readonly outOfTurn?: true
    readonly locked?: true
    readonly beforeTerms?: true
    readonly recorded?: true
    readonly grave?: true
    readonly unknownToken?: Errcode
    readonly limited?: LimitName
    readonly query?: Shape | undefined
    readonly body?: Shape | undefined
    readonly bodiesRepeat?: true
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

/** An object whose handler reads single keys (`auth`, `identifier`): keys that are null count as absent, also one level further down. */
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
  const Anywhere extends true | undefined = undefined,
>(
  line: Line,
  options: EndpointOptions<Line, Auth, Query, Body, Anywhere>,
  handle: (
    request: RequestOf<Line, Auth, Query, Body>,
    services: [Anywhere] extends [true] ? StandbyServices : Services,
  ) => Promise<Reply> | Reply,
): Endpoint {
  const space = line.indexOf(' ')
  const method = line.slice(0, space) as Method
  return { method, path: line.slice(space + 1), options, handle } as Endpoint
}

export type { UiaFlow, UiaProof }
