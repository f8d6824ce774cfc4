import { isErrcode, ProtocolError } from '../core/errors.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { Failure } from './failures.ts'
import type { FederationAnswer } from './federation.ts'

/** Why a server could not be reached. */
export function unasked(of: string, { kind, detail }: Failure): ProtocolError {
  return kind === 'forbidden' ? new ProtocolError('M_FORBIDDEN', detail) : unreachable(of, detail)
}

/** 502 `M_UNKNOWN`: a server does not answer, or its answer is invalid. */
export function unreachable(of: string, detail: string, extra: JsonObject = {}): ProtocolError {
  return new ProtocolError('M_UNKNOWN', `The server ${of} cannot be asked: ${detail}.`, { status: 502, extra })
}

/** Error codes that only a user's own server may send. When clients see one, they end the session or block the account. */
const OWN_SERVERS_WORDS: ReadonlySet<string> = new Set([
  ...[
    'M_UNKNOWN_TOKEN',
    'M_MISSING_TOKEN',
    'M_UNAUTHORIZED',
    'M_USER_LOCKED',
    'M_USER_SUSPENDED',
    'M_USER_DEACTIVATED',
  ],
  ...['M_CONSENT_NOT_GIVEN', 'M_RESOURCE_LIMIT_EXCEEDED', 'M_GUEST_ACCESS_FORBIDDEN'],
])

const OUR_FAULTS: ReadonlySet<string> = new Set(['M_MISSING_PARAM', 'M_INVALID_PARAM', 'M_BAD_JSON', 'M_NOT_JSON'])

/** The server does not know the endpoint, or its answer does not say whether it does. */
export class UnknownPath extends ProtocolError {
  constructor(of: string, status: number) {
    super('M_UNKNOWN', `The server ${of} does not know what it is asked: it answered ${status}.`, { status: 502 })
  }
}

/**
 * A remote refusal is passed on with its code, unless it says that the remote server does not know us: that is no error of our user's.
 */
export function refusalOf(of: string, { status, body, retryAfterMs }: FederationAnswer): ProtocolError {
  const { errcode, error, ...rest } = isObject(body) ? body : {}
  const isMissing = status === 404 || status === 405
  if (errcode === 'M_UNRECOGNIZED' || (isMissing && errcode === undefined)) return new UnknownPath(of, status)
  const pause = retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }
  const isMeantForUs = status === 401 || !isErrcode(errcode) || OWN_SERVERS_WORDS.has(errcode)
  const isPlain429 = status === 429 && !isErrcode(errcode)
  if (isPlain429) return new ProtocolError('M_LIMIT_EXCEEDED', `${of} is asked too much.`, { extra: pause })
  if (isMeantForUs || status >= 500) return unreachable(of, `it answered ${status}`, pause)
  const text = typeof error === 'string' ? error.slice(0, 500) : 'no reason given'
  const version = typeof rest.room_version === 'string' ? { room_version: rest.room_version } : {}
  return new ProtocolError(errcode, `${of} says: ${text}`, { status, extra: { ...version, ...pause } })
}

/**
 * If the remote server says that our request was malformed, that is our fault and not the user's (server-server API, `PUT send_join`,
 * `PUT invite`).
 */
export function ourFault(of: string): (error: unknown) => never {
  return (error) => {
    const isOurs = error instanceof ProtocolError && OUR_FAULTS.has(error.errcode)
    throw isOurs ? unreachable(of, `it makes no sense of what it is asked: ${error.message}`) : error
  }
}
