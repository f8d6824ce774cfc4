import { createCache } from '../core/cache.ts'
import { ProtocolError } from '../core/errors.ts'
import { isObject, type JsonObject, type JsonOffence, type JsonValue, readJson } from '../core/json.ts'
import type { Dialect } from '../core/paths.ts'
import type { ServerPolicy } from '../core/server-policy.ts'
import { encodeCanonical } from '../core/signing/canonical-json.ts'
import type { Discovery } from './discovery.ts'
import { type Failure, failureOf } from './failures.ts'
import { type GuardedClient, type HttpAnswer, type HttpRequest, type HttpStream, readUpTo } from './http.ts'
import {
  MAX_HOMESERVER_ANSWER_BYTES,
  MAX_OPENID_ANSWER_BYTES,
  MAX_REFUSAL_BYTES,
  MAX_REMEMBERED_SERVERS,
} from './limits.ts'

export interface FederationRequest {
  readonly method: 'GET' | 'PUT' | 'POST'
  /** Beneath the root: `federation/v1/version`, query included. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** An object, or canonical JSON. */
  readonly body?: JsonObject | string
  /** Whether this server signs the request. */
  readonly signed?: true
  /** Nobody waits for the answer: other requests may connect first. */
  readonly isPatient?: boolean
  readonly timeoutMs: number
  readonly maxBytes: number
}

export interface FederationAnswer {
  readonly ok: true
  readonly status: number
  /** Undefined if it was not JSON. */
  readonly body: JsonValue | undefined
  /** The first thing in the body that canonical JSON forbids. */
  readonly offence: JsonOffence | undefined
  readonly bytes: Buffer
  /** How long the server asks us to wait, a day at most. */
  readonly retryAfterMs: number | undefined
}

/** Signs requests in this server's name; the body as canonical JSON. */
export type RequestSigner = (request: {
  readonly method: string
  readonly uri: string
  readonly destination: string
  readonly body: string | undefined
}) => string

/** A request whose answer may be long; `timeoutMs` is the time until it begins. */
export interface FederationStreamRequest extends FederationRequest {
  /** For the answer's body. */
  readonly bodyMs: number
  /** How many redirects are followed; none unless said. */
  readonly redirects?: number
}

/** Requests to other homeservers, with discovery, in the dialect that each server speaks. */
export interface Federation {
  request(server: string, request: FederationRequest): Promise<FederationAnswer | Failure>
  /** As `request`, but the body of a 2xx answer is a stream. */
  stream(server: string, request: FederationStreamRequest): Promise<HttpStream | FederationAnswer | Failure>
}

const TIMEOUT_MS = 10_000
const LONGEST_RETRY_MS = 24 * 3_600_000
const UNREACHED = new Set(['connect', 'dns', 'tls'])

export function createFederation(deps: {
  readonly client: GuardedClient
  readonly discovery: Discovery
  /** The generations of paths, the preferred one first. */
  readonly dialects: readonly Dialect[]
  readonly sign: RequestSigner
  readonly policy: ServerPolicy
}): Federation {
  const { client, discovery, dialects, sign, policy } = deps
  const known = createCache<string, Dialect>(MAX_REMEMBERED_SERVERS)

  async function ask<Answer extends HttpAnswer | HttpStream>(
    server: string,
    request: FederationRequest,
    dialect: Dialect,
    send: (request: HttpRequest) => Promise<Answer | Failure>,
  ): Promise<Answer | Failure> {
    const { targets, steps } = await discovery.find(server)
    const { method } = request
    const uri = `/_${dialect}/${request.path}`
    const body = typeof request.body === 'object' ? encodeCanonical(request.body) : request.body
    const headers = () => ({
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(request.signed && { authorization: sign({ method, uri, destination: server, body }) }),
      ...request.headers,
    })
    const { timeoutMs, maxBytes, isPatient } = request
    let answer: Answer | Failure = { ok: false, kind: 'refused', detail: steps.join('; ') }
    for (const { origin, via } of targets) {
      answer = await send({ method, url: origin + uri, headers, body, timeoutMs, maxBytes, via, isPatient })
      // The next host is tried only if this one cannot have received the request.
      if (answer.ok || !UNREACHED.has(answer.kind)) return answer
    }
    return answer
  }

  /** Uses the dialect that a server is known to speak, or finds out which it speaks. */
  async function inDialect<Answer extends HttpAnswer | HttpStream>(
    server: string,
    request: FederationRequest,
    send: (request: HttpRequest) => Promise<Answer | Failure>,
  ): Promise<FederationAnswer | Exclude<Answer, HttpAnswer> | Failure> {
    const detail = policy.refusalOf(server)
    if (detail !== undefined) return { ok: false, kind: 'forbidden', detail }
    const sure = known.get(server)
    let first: FederationAnswer | undefined
    for (const dialect of sure === undefined ? dialects : [sure]) {
      const answer = await ask(server, request, dialect, send)
      if (!answer.ok) return first ?? answer
      if (isStream(answer)) {
        known.set(server, dialect)
        return answer as Exclude<Answer, HttpAnswer>
      }
      const { value: body, offence } = readAnswer(answer)
      const retryAfterMs = readRetryAfter(answer, body)
      const read = { ok: true, status: answer.status, body, offence, bytes: answer.body, retryAfterMs } as const
      if (!isUnknownPath(read)) {
        known.set(server, dialect)
        return read
      }
      // The server may have been upgraded and know other paths now.
      known.delete(server)
      first ??= read
    }
    return first!
  }

  return {
    request: (server, request) => inDialect<HttpAnswer>(server, request, client.request),
    stream: (server, request) =>
      inDialect<HttpAnswer | HttpStream>(server, request, async (sent) => {
        const { bodyMs, redirects = 0 } = request
        const answer = await client.stream({ ...sent, bodyMs, redirects })
        return !answer.ok || isSuccess(answer) ? answer : asRead(answer)
      }),
  }
}

const isSuccess = ({ status }: { readonly status: number }): boolean => status >= 200 && status <= 299
const isStream = (answer: HttpAnswer | HttpStream): answer is HttpStream => !Buffer.isBuffer(answer.body)

/** Reads the body of an error answer, which is short. */
async function asRead({ ok, status, headers, url, body }: HttpStream): Promise<HttpAnswer | Failure> {
  try {
    const bytes = await readUpTo(body, MAX_REFUSAL_BYTES)
    return { ok, status, headers, body: bytes, url, certificate: undefined }
  } catch (error) {
    return failureOf(error)
  }
}

function readAnswer({ body }: HttpAnswer): { value: JsonValue | undefined; offence: JsonOffence | undefined } {
  try {
    return readJson(body)
  } catch {
    return { value: undefined, offence: undefined }
  }
}

/** The wait of a rate-limited answer: in the body, or as seconds or a date in the header (RFC 9110, 10.2.3). */
function readRetryAfter({ status, headers }: HttpAnswer, body: JsonValue | undefined): number | undefined {
  if (status !== 429 && status !== 503) return undefined
  const said = isObject(body) ? body.retry_after_ms : undefined
  const header = headers['retry-after'] ?? ''
  // Relative to the other server's clock.
  const date = Date.parse(header) - Date.parse(headers.date ?? '')
  const ms = typeof said === 'number' ? said : /^\d{1,10}$/.test(header) ? Number(header) * 1_000 : date
  return ms > 0 ? Math.min(Math.ceil(ms), LONGEST_RETRY_MS) : undefined
}

/** Whether no endpoint has this path: the server says so, or its proxy answers 404 with another body. */
function isUnknownPath({ status, body }: FederationAnswer): boolean {
  if (status !== 404 && status !== 405) return false
  return !isObject(body) || body.errcode === undefined || body.errcode === 'M_UNRECOGNIZED'
}

/** Asks another homeserver for the user of an OpenID token (server-server API, `GET openid/userinfo`). */
export function createOpenIdVerifier(federation: Federation) {
  return {
    /**
     * The server's `sub`, unchecked; undefined if it does not know the token or gives none.
     * @throws ProtocolError `M_UNKNOWN` (502) when the server cannot be asked
     */
    async subjectOf(server: string, accessToken: string): Promise<string | undefined> {
      const answer = await federation.request(server, {
        method: 'GET',
        path: `federation/v1/openid/userinfo?access_token=${encodeURIComponent(accessToken)}`,
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_OPENID_ANSWER_BYTES,
      })
      if (!answer.ok || answer.status >= 500) {
        throw new ProtocolError('M_UNKNOWN', `The homeserver ${server} cannot be asked about this token.`, {
          status: 502,
        })
      }
      const { sub } = answer.status === 200 && isObject(answer.body) ? answer.body : {}
      return typeof sub === 'string' ? sub : undefined
    },
  }
}

/** Requests of the identity service to homeservers. */
export function createHomeserverCalls(federation: Federation) {
  return {
    /** @throws Error when the server cannot be reached */
    async call(
      server: string,
      request: { readonly method: 'PUT' | 'POST'; readonly path: string; readonly body: JsonObject },
    ): Promise<{ readonly status: number; readonly body: JsonValue | undefined }> {
      const answer = await federation.request(server, {
        ...request,
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_HOMESERVER_ANSWER_BYTES,
      })
      if (!answer.ok) throw new Error(answer.detail)
      return answer
    },
  }
}
