import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import { writeJson } from '../../core/large-integers.ts'
import {
  MAX_APP_ID_CHARS,
  MAX_PROFILE_TAG_CHARS,
  MAX_PUSHER_DATA_BYTES,
  MAX_PUSHER_LANG_CHARS,
  MAX_PUSHER_NAME_CHARS,
  MAX_PUSHKEY_BYTES,
} from '../limits/pushers.ts'
import { checkText } from '../text.ts'

/** The body of `POST C/pushers/set`. */
export interface PusherBody {
  readonly kind: string | null
  readonly app_id: string
  readonly pushkey: string
  readonly app_display_name?: string
  readonly device_display_name?: string
  readonly profile_tag?: string
  readonly lang?: string
  readonly data?: JsonObject
  readonly append?: boolean
  readonly enabled?: boolean
  readonly 'org.matrix.msc3881.enabled'?: boolean
}

/** A body that asks for a pusher, checked. */
export interface CheckedWish {
  readonly kind: 'http' | 'email'
  readonly app_display_name: string
  readonly device_display_name: string
  readonly profile_tag: string | null
  readonly lang: string
  readonly data: JsonObject
  readonly is_enabled: boolean
}

export const MAIL_APP_ID = 'm.email'
/** The only path of a push gateway (client-server API, "POST pushers/set"). */
const GATEWAY_PATH = '/_matrix/push/v1/notify'
const REQUIRED = ['app_display_name', 'device_display_name', 'lang', 'data'] as const

/** Checks the two keys by which a pusher is known. @throws ProtocolError `M_INVALID_PARAM` */
export function checkPusherKeys({ app_id, pushkey }: Pick<PusherBody, 'app_id' | 'pushkey'>): void {
  checkText('app_id', app_id, MAX_APP_ID_CHARS)
  checkText('pushkey', pushkey, MAX_PUSHKEY_BYTES)
  if (Buffer.byteLength(pushkey) > MAX_PUSHKEY_BYTES)
    throw invalid(`'pushkey' is longer than ${MAX_PUSHKEY_BYTES} bytes.`)
  if (app_id === '') throw invalid("'app_id' is empty: name the application.")
  if (pushkey === '') throw invalid("'pushkey' is empty: name the device.")
}

/**
 * Checks what a user asks for. The address of a mail is checked elsewhere.
 * @throws ProtocolError `M_MISSING_PARAM`, `M_INVALID_PARAM`
 */
export function checkPusherWish(body: PusherBody): CheckedWish {
  const { kind, app_display_name, device_display_name, profile_tag = null, lang, data } = body
  if (kind !== 'http' && kind !== 'email') {
    throw invalid("'kind' is http, email, or null to delete the pusher.")
  }
  if (app_display_name === undefined || device_display_name === undefined || lang === undefined || data === undefined) {
    const missing = REQUIRED.filter((name) => body[name] === undefined)
    throw new ProtocolError('M_MISSING_PARAM', `Missing parameters: ${missing.join(', ')}`)
  }
  checkText('app_display_name', app_display_name, MAX_PUSHER_NAME_CHARS)
  checkText('device_display_name', device_display_name, MAX_PUSHER_NAME_CHARS)
  checkText('lang', lang, MAX_PUSHER_LANG_CHARS)
  if (profile_tag !== null) checkText('profile_tag', profile_tag, MAX_PROFILE_TAG_CHARS)
  checkData(kind, data)
  if ((kind === 'email') !== (body.app_id === MAIL_APP_ID)) {
    throw invalid(`The 'app_id' of a pusher for mails is ${MAIL_APP_ID}, and no other pusher has it.`)
  }
  const is_enabled = body['org.matrix.msc3881.enabled'] ?? body.enabled ?? true
  return { kind, app_display_name, device_display_name, profile_tag, lang, data, is_enabled }
}

function checkData(kind: 'http' | 'email', data: JsonObject): void {
  const text = writeJson(data)
  if (Buffer.byteLength(text) > MAX_PUSHER_DATA_BYTES) {
    throw invalid(`'data' is longer than ${MAX_PUSHER_DATA_BYTES} bytes.`)
  }
  if (kind === 'http') checkGateway(data.url)
}

/** HTTPS, with exactly the path of a push gateway and nothing else. @throws ProtocolError */
function checkGateway(url: unknown): void {
  if (url === undefined)
    throw new ProtocolError('M_MISSING_PARAM', "'data' lacks 'url', the address of the push gateway.")
  if (typeof url !== 'string' || !URL.canParse(url)) throw invalid("'data.url' is no URL.")
  const { protocol, pathname, search, hash, username, password } = new URL(url)
  if (protocol !== 'https:') throw invalid("'data.url' is no https URL.")
  if (pathname !== GATEWAY_PATH) throw invalid(`The path of 'data.url' is not ${GATEWAY_PATH}.`)
  if (search !== '' || hash !== '' || username !== '' || password !== '') {
    throw invalid("'data.url' has more than a host, a port and a path.")
  }
}

function invalid(message: string): ProtocolError {
  return new ProtocolError('M_INVALID_PARAM', message)
}
