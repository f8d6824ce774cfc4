import type { ServerName } from '../core/ids.ts'
import { isObject, type JsonObject, readJson } from '../core/json.ts'
import type { Dialect } from '../core/paths.ts'

/** A request to another identity server. */
export interface IdentityRequest {
  readonly server: ServerName
  readonly method: 'GET' | 'POST'
  /** The path below the root of version 2: `/lookup`. */
  readonly path: string
  readonly body?: JsonObject
  /** Gives the `Authorization` header for a path and query. */
  authorization(uri: string): string
}

export interface IdentityAnswer {
  readonly status: number
  /** Undefined if it was not a JSON object. */
  readonly body: JsonObject | undefined
}

/** Why there is no answer. `detail` is for the log: it may contain text of the other side. */
export class IdentityServerError extends Error {
  readonly isTimeout: boolean

  constructor(kind: string, detail: string) {
    super(detail)
    this.name = 'IdentityServerError'
    this.isTimeout = kind === 'timeout'
  }
}

export interface IdentityClient {
  /** @throws IdentityServerError when there is no answer */
  call(request: IdentityRequest): Promise<IdentityAnswer>
  /** Requests a URL that came from somebody else. @throws IdentityServerError when there is no answer */
  get(url: string): Promise<IdentityAnswer>
}

/** The needed part of the guarded client. */
export interface Requests {
  request(request: {
    readonly method: string
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly body?: string | undefined
    readonly timeoutMs: number
    readonly maxBytes: number
    readonly redirects?: number
  }): Promise<
    | { readonly ok: true; readonly status: number; readonly body: Buffer }
    | { readonly ok: false; readonly kind: string; readonly detail: string }
  >
}

const TIMEOUT_MS = 10_000
const MAX_BYTES = 65_536
const MAX_REDIRECTS = 3
type Outgoing = Pick<Parameters<Requests['request']>[0], 'method' | 'url' | 'headers' | 'body' | 'redirects'>

/**
 * Calls identity servers under the paths of `dialect`; `auto`: under `/_matrix`, and under `/_proto` if a server does not know that.
 */
export function createIdentityClient(http: Requests, dialect: 'auto' | Dialect): IdentityClient {
  async function send(request: Outgoing): Promise<IdentityAnswer> {
    const answer = await http.request({ ...request, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES })
    if (!answer.ok) throw new IdentityServerError(answer.kind, answer.detail)
    return { status: answer.status, body: objectIn(answer.body) }
  }

  function once(request: IdentityRequest, root: Dialect): Promise<IdentityAnswer> {
    const { server, method, path, body, authorization } = request
    const uri = `/_${root}/identity/v2${path}`
    return send({
      method,
      url: `https://${server}${uri}`,
      headers: {
        accept: 'application/json',
        authorization: authorization(uri),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      body: body && JSON.stringify(body),
    })
  }

  return {
    get: (url) => send({ method: 'GET', url, headers: { accept: 'application/json' }, redirects: MAX_REDIRECTS }),
    async call(request) {
      if (dialect !== 'auto') return once(request, dialect)
      const answer = await once(request, 'matrix')
      return isUnknownPath(answer) ? once(request, 'proto') : answer
    },
  }
}

/** Whether the server does not know the path. The answer for an unknown session is different. */
function isUnknownPath({ status, body }: IdentityAnswer): boolean {
  return (status === 404 || status === 405) && (body === undefined || body.errcode === 'M_UNRECOGNIZED')
}

function objectIn(bytes: Buffer): JsonObject | undefined {
  try {
    const { value } = readJson(bytes)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
