import type { UserId } from '../ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../json.ts'
import { encodeCanonical } from '../signing/canonical-json.ts'
import {
  checkKeySize,
  MAX_KEY_BYTES,
  malformed,
  requireMembers,
  requireObject,
  requireText,
  signaturesBy,
  signedJson,
} from './key-offence.ts'

/** A one-time or fallback key, of the right shape. Clients verify its signatures. */
export interface OneTimeKey {
  readonly algorithm: string
  readonly keyId: string
  /** Canonical JSON: a string, or an object with the signatures by the user. */
  readonly json: string
}

/** `<algorithm>:<key id>` */
const NAME = /^([\w.-]{1,100}):([\w+/=.-]{1,255})$/

/** The keys of an upload. @throws ProtocolError `M_BAD_JSON`, `M_INVALID_PARAM` */
export function readOneTimeKeys(keys: JsonObject, userId: UserId): OneTimeKey[] {
  return Object.keys(keys).map((name) => readOneTimeKey(name, keys[name]!, userId))
}

/** As {@link readOneTimeKeys}, with one key per algorithm at most. */
export function readFallbackKeys(keys: JsonObject, userId: UserId): OneTimeKey[] {
  const read = readOneTimeKeys(keys, userId)
  if (new Set(read.map(({ algorithm }) => algorithm)).size < read.length) {
    throw malformed("'fallback_keys' may hold one key per algorithm.")
  }
  return read
}

export function readOneTimeKey(name: string, value: JsonValue, userId: UserId): OneTimeKey {
  const [, algorithm, keyId] = NAME.exec(name) ?? []
  if (algorithm === undefined || keyId === undefined) {
    throw malformed('A one-time key must be named <algorithm>:<key id>.')
  }
  return { algorithm, keyId, json: isObject(value) ? readObject(value, userId) : readPlain(value) }
}

function readPlain(value: JsonValue): string {
  const key = requireText('a one-time key', value)
  if (key.length > MAX_KEY_BYTES) throw malformed(`A one-time key is longer than ${MAX_KEY_BYTES} characters.`)
  return encodeCanonical(key)
}

function readObject(object: JsonObject, userId: UserId): string {
  requireMembers('a one-time key', object, ['key', 'signatures'])
  requireText('the `key` of a one-time key', object.key)
  const all = requireObject('the `signatures` of a one-time key', object.signatures)
  const own = signaturesBy(userId, 'a one-time key', object)
  checkKeySize('a one-time key', signedJson('a one-time key', object), own)
  const { unsigned: _, ...rest } = object
  return encodeCanonical({ ...rest, signatures: Object.hasOwn(all, userId) ? { [userId]: all[userId]! } : {} })
}
