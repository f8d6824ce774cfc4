import { decodeBase64, encodeBase64 } from '../base64.ts'
import type { UserId } from '../ids.ts'
import { isObject, type JsonObject } from '../json.ts'
import { encodeCanonical } from '../signing/canonical-json.ts'
import { signatureOf } from '../signing/json-signature.ts'
import { verifySignature } from '../signing/key.ts'
import {
  checkKeySize,
  invalidSignature,
  isPublicKey,
  malformed,
  requireObject,
  signaturesBy,
  signedJson,
} from './key-offence.ts'

export const USAGES = ['master', 'self_signing', 'user_signing'] as const
/** The use of a user's key: `master` signs the other two, `self_signing` the user's devices, `user_signing` other users' master keys. */
export type KeyUsage = (typeof USAGES)[number]

/** A cross-signing key, checked. */
export interface CrossSigningKey {
  readonly usage: KeyUsage
  /** Unpadded base64; signatures of the key and by the key are found by it. */
  readonly publicKey: string
  /** Canonical JSON without `signatures` and `unsigned`. */
  readonly json: string
  /** The uploaded object without `signatures`. */
  readonly whole: string
  /** The user's signatures, as uploaded. */
  readonly signatures: ReadonlyMap<string, string>
}

/**
 * Reads a key of a user (client-server API, "Cross-signing").
 * @throws ProtocolError `M_INVALID_PARAM`
 */
export function readCrossSigningKey(object: JsonObject, usage: KeyUsage, userId: UserId): CrossSigningKey {
  const name = `${usage}_key`
  if (object.user_id !== userId) throw malformed(`'${name}.user_id' must be ${userId}.`)
  const usages = object.usage
  if (!Array.isArray(usages) || usages.length !== 1 || usages[0] !== usage) {
    throw malformed(`'${name}.usage' must be ["${usage}"].`)
  }
  const keys = requireObject(`${name}.keys`, object.keys)
  const [id = '', ...others] = Object.keys(keys)
  const publicKey = keys[id]
  if (others.length > 0 || !isPublicKey(publicKey) || id !== `ed25519:${publicKey}` || !isUnpadded(publicKey)) {
    throw malformed(`'${name}.keys' must hold one key, as "ed25519:<key>": "<key>" in unpadded base64.`)
  }
  const { signatures: _, ...rest } = object
  const json = signedJson(name, object)
  const whole = object.unsigned === undefined ? json : encodeCanonical(rest)
  const signatures = signaturesBy(userId, name, object)
  checkKeySize(name, whole, signatures)
  return { usage, publicKey, json, whole, signatures }
}

/** The `signatures` of an upload without signatures by the user, as JSON (such as `{}`); null if the key is absent. */
export function emptySignaturesOf({ signatures }: JsonObject, userId: UserId): string | null {
  if (!isObject(signatures)) return null
  return JSON.stringify(Object.hasOwn(signatures, userId) ? { [userId]: {} } : {})
}

/** The signed part of a key, from its uploaded JSON. */
export function signedPartOf(whole: string): string {
  return whole.includes('"unsigned"') ? signedJson('the key', JSON.parse(whole) as JsonObject) : whole
}

/** Whether a key is unpadded base64. Keys are compared as texts, so each must have only one text. */
function isUnpadded(publicKey: string): boolean {
  return encodeBase64(decodeBase64(publicKey)!) === publicKey
}

/** The master key's signature that the other two must carry. @throws ProtocolError `M_INVALID_SIGNATURE` */
export function masterSignatureOf(object: JsonObject, key: CrossSigningKey, userId: UserId, master: string): string {
  const signature = signatureOf(object, userId, `ed25519:${master}`)
  if (signature === undefined || !verifySignature(master, key.json, signature)) {
    throw invalidSignature(`'${key.usage}_key' must be signed by the master key.`)
  }
  return signature
}
