import { decodeBase64 } from '../base64.ts'
import { ProtocolError } from '../errors.ts'
import { encodeCanonical, isObject, type JsonObject, type JsonValue } from '../json.ts'

/** Of a device list or a set of keys: what others would have to carry for each of ours. */
export const MAX_KEY_BYTES = 16_384

/** The bytes of an ed25519 or a curve25519 key. */
const PUBLIC_KEY_BYTES = 32

export function malformed(what: string): ProtocolError {
  return new ProtocolError('M_INVALID_PARAM', what)
}

export function invalidSignature(what: string): ProtocolError {
  return new ProtocolError('M_INVALID_SIGNATURE', what)
}

export function requireObject(name: string, value: JsonValue | undefined): JsonObject {
  if (!isObject(value)) throw malformed(`'${name}' must be an object.`)
  return value
}

export function requireText(name: string, value: JsonValue | undefined): string {
  if (typeof value !== 'string') throw malformed(`'${name}' must be a string.`)
  return value
}

/** Whether a text is a curve25519 or ed25519 public key in base64. */
export function isPublicKey(text: JsonValue | undefined): text is string {
  return typeof text === 'string' && text.length <= 44 && decodeBase64(text)?.length === PUBLIC_KEY_BYTES
}

/** What signatures of the object cover, in canonical JSON. @throws ProtocolError `M_INVALID_PARAM` for one that is too large */
export function signedJson(name: string, object: JsonObject): string {
  const { signatures: _, unsigned: __, ...signed } = object
  const json = encodeCanonical(signed)
  if (Buffer.byteLength(json) > MAX_KEY_BYTES) throw malformed(`'${name}' is larger than ${MAX_KEY_BYTES} bytes.`)
  return json
}
