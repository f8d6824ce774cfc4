import { decodeBase64 } from '../base64.ts'
import { ProtocolError } from '../errors.ts'
import type { UserId } from '../ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../json.ts'
import { encodeCanonical } from '../signing/canonical-json.ts'

/** The largest key object. It is limited because other servers and clients must store it. */
export const MAX_KEY_BYTES = 16_384
/** The longest name of a signature, `<algorithm>:<key>`, which is indexed in the store. */
const MAX_SIGNER_KEY_BYTES = 1_100

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

/** @throws ProtocolError `M_BAD_JSON` for an object that lacks one of the members */
export function requireMembers(name: string, object: JsonObject, members: readonly string[]): void {
  const missing = members.find((member) => !Object.hasOwn(object, member))
  if (missing !== undefined) throw new ProtocolError('M_BAD_JSON', `'${name}' lacks '${missing}'.`)
}

/** The user's signatures of an object, unverified: clients verify them. @throws ProtocolError `M_INVALID_PARAM` */
export function signaturesBy(userId: UserId, name: string, { signatures = {} }: JsonObject): Map<string, string> {
  const all = requireObject(`${name}.signatures`, signatures)
  const own = Object.hasOwn(all, userId) ? requireObject(`${name}.signatures`, all[userId]) : {}
  return new Map(
    Object.entries(own).map(([signerKey, value]) => {
      const signature = requireText(`${name}.signatures`, value)
      const isStorable = !`${signerKey}${signature}`.includes('\0')
      if (isStorable && Buffer.byteLength(signerKey) <= MAX_SIGNER_KEY_BYTES) return [signerKey, signature]
      throw malformed(`'${name}.signatures' holds what is no signature.`)
    }),
  )
}

/** @throws ProtocolError `M_INVALID_PARAM` for a key that is too large with its signatures */
export function checkKeySize(name: string, json: string, signatures: ReadonlyMap<string, string>): void {
  const bytes = [...signatures].flat().reduce((sum, text) => sum + Buffer.byteLength(text), Buffer.byteLength(json))
  if (bytes > MAX_KEY_BYTES) throw malformed(`'${name}' is larger than ${MAX_KEY_BYTES} bytes.`)
}

/** Whether a text is a curve25519 or ed25519 public key in base64. */
export function isPublicKey(text: JsonValue | undefined): text is string {
  return typeof text === 'string' && text.length <= 44 && decodeBase64(text)?.length === PUBLIC_KEY_BYTES
}

/** The signed part of the object, in canonical JSON. @throws ProtocolError `M_INVALID_PARAM` if it is too large */
export function signedJson(name: string, object: JsonObject): string {
  const { signatures: _, unsigned: __, ...signed } = object
  const json = encodeCanonical(signed)
  if (Buffer.byteLength(json) > MAX_KEY_BYTES) throw malformed(`'${name}' is larger than ${MAX_KEY_BYTES} bytes.`)
  return json
}
