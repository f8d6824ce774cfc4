import type { Config } from '../config/schema.ts'
import { createCache } from '../core/cache.ts'
import { isObject, type JsonValue } from '../core/json.ts'
import { DIALECTS, type Dialect } from '../core/paths.ts'
import { type Failure, failureOf } from './failures.ts'
import type { GuardedClient } from './http.ts'

/** The address of an application service, and the token that it knows us by. */
export interface AppserviceTarget {
  readonly url: string
  readonly hs_token: string
}

/** The operations of application services that this server uses, in the specification's words. */
export const APPSERVICE_OPERATIONS = [
  'PUT A/transactions/{txnId}',
  'POST A/ping',
  'GET A/users/{userId}',
  'GET A/rooms/{roomAlias}',
  'GET A/thirdparty/protocol/{protocol}',
  'GET A/thirdparty/user/{protocol}',
  'GET A/thirdparty/location/{protocol}',
  'GET A/thirdparty/location',
  'GET A/thirdparty/user',
] as const

export interface AppserviceRequest {
  readonly operation: (typeof APPSERVICE_OPERATIONS)[number]
  /** After the version: `/transactions/7`, with its query. */
  readonly path: string
  /** The older path without a version; undefined if there is none. */
  readonly legacyPath?: string
  readonly body?: string
  readonly timeoutMs: number
}

/** `unanswered`: it could not be reached, or its answer could not be read. */
export type AppserviceAnswer =
  | { readonly kind: 'answered'; readonly status: number; readonly body: JsonValue | undefined; readonly text: string }
  | { readonly kind: 'unanswered'; readonly isTimeout: boolean; readonly detail: string }

/** Calls application services (application service API), in the network's dialect and with the paths and token that each supports. */
export interface AppserviceClient {
  /** The answer with its body. */
  ask(target: AppserviceTarget, request: AppserviceRequest): Promise<AppserviceAnswer>
  /** Gives only the status of the answer; does not wait for its body. */
  tell(target: AppserviceTarget, request: AppserviceRequest): Promise<AppserviceAnswer>
}

type Style = Dialect | 'legacy'

/** After this time a service with old paths is tried with the new paths again. */
const UPGRADE_AFTER_MS = 3_600_000
const MAX_REMEMBERED = 2_000
const MAX_ANSWER_BYTES = 1_048_576

const ROOTS: Readonly<Record<Dialect, string>> = { matrix: '/_matrix/app/v1', proto: '/_proto/app/v1' }

export function createAppserviceClient(deps: {
  readonly client: GuardedClient
  readonly dialect: Config['outbound']['dialect']
  readonly now: () => number
}): AppserviceClient {
  const { client, now } = deps
  const dialects: readonly Dialect[] = deps.dialect === 'auto' ? DIALECTS : [deps.dialect]
  /** The style that a service understood last, by its address and the operation. */
  const styles = createCache<string, { readonly style: Style; readonly since: number }>(MAX_REMEMBERED)

  function candidates(known: Style | undefined, hasLegacy: boolean): Style[] {
    const all: Style[] = hasLegacy ? [...dialects, 'legacy'] : [...dialects]
    return known === undefined || !all.includes(known) ? all : [known, ...all.filter((style) => style !== known)]
  }

  async function once(target: AppserviceTarget, request: AppserviceRequest, style: Style, wantsBody: boolean) {
    const path = style === 'legacy' ? request.legacyPath! : ROOTS[style] + request.path
    const { operation, body, timeoutMs } = request
    const found = await client.stream({
      method: operation.slice(0, operation.indexOf(' ')),
      // Old services look for the token in the query only.
      url: `${target.url}${path}${path.includes('?') ? '&' : '?'}access_token=${encodeURIComponent(target.hs_token)}`,
      headers: {
        authorization: `Bearer ${target.hs_token}`,
        ...(body !== undefined && {
          'content-type': 'application/json',
          'content-length': String(Buffer.byteLength(body)),
        }),
      },
      body,
      timeoutMs,
      bodyMs: timeoutMs,
      maxBytes: MAX_ANSWER_BYTES,
    })
    if (!found.ok) return unanswered(found, target)
    if (!wantsBody && found.status === 200) {
      void drain(found.body)
      return { kind: 'answered', status: 200, body: undefined, text: '' } as const
    }
    try {
      const chunks: Buffer[] = []
      for await (const chunk of found.body) chunks.push(chunk)
      const text = Buffer.concat(chunks).toString('utf8')
      return { kind: 'answered', status: found.status, body: parse(text), text } as const
    } catch (error) {
      return unanswered(failureOf(error), target)
    }
  }

  async function call(
    target: AppserviceTarget,
    request: AppserviceRequest,
    wantsBody: boolean,
  ): Promise<AppserviceAnswer> {
    const key = `${target.url} ${request.operation}`
    const known = styles.get(key)
    const isFresh = known !== undefined && (known.style !== 'legacy' || now() < known.since + UPGRADE_AFTER_MS)
    let first: AppserviceAnswer | undefined
    for (const style of candidates(isFresh ? known.style : undefined, request.legacyPath !== undefined)) {
      const answer = await once(target, request, style, wantsBody)
      if (answer.kind === 'unanswered') return answer
      if (!isUnrecognised(answer)) {
        if (known?.style !== style || !isFresh) styles.set(key, { style, since: now() })
        return answer
      }
      first ??= answer
    }
    return first!
  }

  return {
    ask: (target, request) => call(target, request, true),
    tell: (target, request) => call(target, request, false),
  }
}

/** Reads the rest of a body, within its limits, so that the connection can be used again. */
async function drain(body: AsyncIterable<Buffer>): Promise<void> {
  try {
    for await (const _ of body);
  } catch {
    // Too long or too slow: the connection has ended.
  }
}

function unanswered({ kind, detail }: Failure, { hs_token }: AppserviceTarget): AppserviceAnswer {
  return { kind: 'unanswered', isTimeout: kind === 'timeout', detail: detail.replaceAll(hs_token, '...').slice(0, 500) }
}

/** Whether the service does not know the path, as opposed to the thing that it names. */
function isUnrecognised({ status, body }: { status: number; body: JsonValue | undefined }): boolean {
  const errcode = isObject(body) ? body.errcode : undefined
  if (status !== 404 && status !== 405 && status !== 501) return false
  return typeof errcode !== 'string' || errcode === 'M_UNRECOGNIZED'
}

function parse(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}
