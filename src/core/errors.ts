import type { JsonObject } from './json.ts'

/**
 * Every error code of this server, with its HTTP status unless the thrower gives another.
 * Source: client-server API "Standard error response", identity service API "Standard error response".
 */
export const ERROR_STATUS = {
  'IO.ELEMENT.MSC4306.M_CONFLICTING_UNSUBSCRIPTION': 409,
  'IO.ELEMENT.MSC4306.M_NOT_IN_THREAD': 400,
  IO_ELEMENT_MSC4388_CONCURRENT_WRITE: 409,
  M_BAD_ALIAS: 400,
  M_BAD_JSON: 400,
  M_BAD_STATE: 400,
  M_BAD_STATUS: 502,
  M_CANNOT_LEAVE_SERVER_NOTICE_ROOM: 403,
  M_CANNOT_OVERWRITE_MEDIA: 409,
  M_CAPTCHA_INVALID: 401,
  M_CAPTCHA_NEEDED: 401,
  M_CONCURRENT_WRITE: 409,
  M_CONNECTION_FAILED: 502,
  M_CONNECTION_TIMEOUT: 504,
  M_DESTINATION_REJECTED: 400,
  M_DUPLICATE_ANNOTATION: 400,
  M_EMAIL_SEND_ERROR: 400,
  M_EXCLUSIVE: 400,
  M_FORBIDDEN: 403,
  M_GUEST_ACCESS_FORBIDDEN: 403,
  M_INCOMPATIBLE_ROOM_VERSION: 400,
  M_INVALID_ADDRESS: 400,
  M_INVALID_EMAIL: 400,
  M_INVALID_PARAM: 400,
  M_INVALID_PEPPER: 400,
  M_INVALID_ROOM_STATE: 400,
  M_INVALID_SIGNATURE: 400,
  M_INVALID_USERNAME: 400,
  M_INVITE_BLOCKED: 403,
  M_KEY_TOO_LARGE: 400,
  M_LIMIT_EXCEEDED: 429,
  M_MISSING_PARAM: 400,
  M_MISSING_PARAMS: 400,
  M_MISSING_TOKEN: 401,
  M_NOT_FOUND: 404,
  M_NOT_JSON: 400,
  M_NOT_YET_UPLOADED: 504,
  M_NO_VALID_SESSION: 404,
  M_PROFILE_TOO_LARGE: 400,
  M_RESOURCE_LIMIT_EXCEEDED: 403,
  M_ROOM_IN_USE: 400,
  M_SEND_ERROR: 400,
  M_SERVER_NOT_TRUSTED: 400,
  M_SESSION_EXPIRED: 400,
  M_SESSION_NOT_VALIDATED: 400,
  M_TERMS_NOT_SIGNED: 403,
  M_THREEPID_AUTH_FAILED: 403,
  M_THREEPID_DENIED: 403,
  M_THREEPID_IN_USE: 400,
  M_THREEPID_MEDIUM_NOT_SUPPORTED: 400,
  M_THREEPID_NOT_FOUND: 400,
  M_TOKEN_INCORRECT: 400,
  M_TOO_LARGE: 413,
  M_UNABLE_TO_AUTHORISE_JOIN: 400,
  M_UNABLE_TO_GRANT_JOIN: 400,
  M_UNACTIONABLE: 400,
  M_UNAUTHORIZED: 401,
  M_UNKNOWN: 500,
  M_UNKNOWN_DEVICE: 400,
  M_UNKNOWN_POS: 400,
  M_UNKNOWN_TOKEN: 401,
  M_UNRECOGNIZED: 404,
  M_UNSUPPORTED_ROOM_VERSION: 400,
  M_URL_NOT_SET: 400,
  M_USER_DEACTIVATED: 403,
  M_USER_IN_USE: 400,
  M_USER_LOCKED: 401,
  M_USER_SUSPENDED: 403,
  M_WEAK_PASSWORD: 400,
  M_WRONG_ROOM_KEYS_VERSION: 403,
} as const satisfies Record<string, number>

export type Errcode = keyof typeof ERROR_STATUS

export function isErrcode(value: unknown): value is Errcode {
  return typeof value === 'string' && Object.hasOwn(ERROR_STATUS, value)
}

/** Extra keys and a status other than the code's own. */
export interface ErrorDetails {
  readonly status?: number
  readonly extra?: JsonObject
}

/** The only error whose details callers see: `{errcode, error, ...extra}` with a status. Any other error becomes a 500 `M_UNKNOWN`. */
export class ProtocolError extends Error {
  readonly errcode: Errcode
  readonly status: number
  readonly extra: JsonObject

  constructor(errcode: Errcode, message: string, details: ErrorDetails = {}) {
    super(message)
    this.name = 'ProtocolError'
    this.errcode = errcode
    this.status = details.status ?? ERROR_STATUS[errcode]
    this.extra = details.extra ?? {}
  }

  /** The answer's body. */
  toJSON(): JsonObject {
    return { errcode: this.errcode, error: this.message, ...this.extra }
  }
}
