import type { UserId } from '../ids.ts'
import { encodeCanonical, isObject, type JsonObject, type JsonValue } from '../json.ts'
import { signatureOf } from '../signing/json-signature.ts'
import { verifySignature } from '../signing/key.ts'
import {
  invalidSignature,
  isPublicKey,
  MAX_KEY_BYTES,
  malformed,
  requireObject,
  requireText,
  signedJson,
} from './key-offence.ts'

/** A one-time or fallback key, checked. */
export interface OneTimeKey {
  readonly algorithm: string
  readonly keyId: string
  /** Canonical JSON: a string, or an object with the device's signature. */
  readonly json: string
}

/** Whose keys they are. */
export interface KeyOwner {
  readonly userId: UserId
  readonly deviceId: string
  /** What the device signs with; undefined for one that has not said it yet, whose signatures are believed. */
  readonly ed25519: string | undefined
}

/** `<algorithm>:<key id>` */
const NAME = /^([\w.-]{1,100}):([\w+/=.-]{1,255})$/
/** Algorithms whose keys are curve25519 keys. */
const CURVE = new Set(['curve25519', 'signed_curve25519'])

/** The keys of an upload. @throws ProtocolError `M_INVALID_PARAM`, `M_INVALID_SIGNATURE` */
export function readOneTimeKeys(keys: JsonObject, owner: KeyOwner): OneTimeKey[] {
  return Object.keys(keys).map((name) => readOneTimeKey(name, keys[name]!, owner))
}

/** As {@link readOneTimeKeys}, with one key per algorithm at most. */
export function readFallbackKeys(keys: JsonObject, owner: KeyOwner): OneTimeKey[] {
  const read = readOneTimeKeys(keys, owner)
  if (new Set(read.map(({ algorithm }) => algorithm)).size < read.length) {
    throw malformed("'fallback_keys' may hold one key per algorithm.")
  }
  return read
}

export function readOneTimeKey(name: string, value: JsonValue, owner: KeyOwner): OneTimeKey {
  const [, algorithm, keyId] = NAME.exec(name) ?? []
  if (algorithm === undefined || keyId === undefined) {
    throw malformed('A one-time key must be named <algorithm>:<key id>.')
  }
  return { algorithm, keyId, json: isObject(value) ? readObject(algorithm, value, owner) : readPlain(algorithm, value) }
}

function readPlain(algorithm: string, value: JsonValue): string {
  const key = requireText('a one-time key', value)
  if (algorithm === 'signed_curve25519') throw malformed('A signed_curve25519 key must be an object.')
  checkKey(algorithm, key)
  return encodeCanonical(key)
}

function readObject(algorithm: string, object: JsonObject, { userId, deviceId, ed25519 }: KeyOwner): string {
  checkKey(algorithm, requireText('the `key` of a one-time key', object.key))
  requireObject('the `signatures` of a one-time key', object.signatures)
  const signed = signedJson('a one-time key', object)
  const keyId = `ed25519:${deviceId}`
  const signature = signatureOf(object, userId, keyId)
  if (signature === undefined || (ed25519 !== undefined && !verifySignature(ed25519, signed, signature))) {
    throw invalidSignature(`A one-time key must be signed by ${keyId} of ${userId}.`)
  }
  const { unsigned: _, ...rest } = object
  return encodeCanonical({ ...rest, signatures: { [userId]: { [keyId]: signature } } })
}

function checkKey(algorithm: string, key: string): void {
  if (CURVE.has(algorithm) ? isPublicKey(key) : key.length <= MAX_KEY_BYTES) return
  throw malformed(`A ${algorithm} key is no key.`)
}
