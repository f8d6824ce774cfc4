import type { UserId } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import { masterSignatureOf, readCrossSigningKey } from '../../core/keys/cross-signing-keys.ts'
import { areSelfSigned, readDeviceKeys } from '../../core/keys/device-keys.ts'
import { offenceIn } from '../../core/signing/canonical-json.ts'
import { MAX_DEVICE_NAME_CHARS } from '../limits.ts'
import { addSignature, type KnownKeys, noKeys, type SignatureMap, writeSigned } from './known-keys.ts'

/** Signatures on one user's keys that did not come from that user's server. */
export interface OwnSignature {
  readonly signer: UserId
  readonly keyId: string
  readonly signature: string
}

/** The requester's signature on a master key. */
export type OwnSignatureOf = (userId: UserId, publicKey: string) => OwnSignature | undefined

/** Reads another server's answer about the users that it was asked about. Malformed parts, and parts about others, are dropped. */
export function readRemoteKeys(
  asked: ReadonlyMap<UserId, readonly string[]>,
  answer: JsonObject,
  ownSignatureOf: OwnSignatureOf,
): KnownKeys {
  const known = noKeys()
  for (const [userId, ids] of asked) {
    const devices = memberOf(answer.device_keys, userId)
    if (isObject(devices)) known.devices.set(userId, readDevices(userId, devices, ids))
    const master = memberOf(answer.master_keys, userId)
    const selfSigning = memberOf(answer.self_signing_keys, userId)
    attempt(() => {
      if (!isSound(master)) return
      const { publicKey, json } = readCrossSigningKey(master, 'master', userId)
      const signatures = signaturesBy(userId, master)
      const own = ownSignatureOf(userId, publicKey)
      if (own) addSignature(signatures, own.signer, own.keyId, own.signature)
      known.master.set(userId, writeSigned(json, signatures))
      if (!isSound(selfSigning)) return
      const key = readCrossSigningKey(selfSigning, 'self_signing', userId)
      masterSignatureOf(selfSigning, key, userId, publicKey)
      known.self_signing.set(userId, writeSigned(key.json, signaturesBy(userId, selfSigning)))
    })
  }
  return known
}

function readDevices(userId: UserId, devices: JsonObject, ids: readonly string[]): Map<string, string> {
  const read = new Map<string, string>()
  for (const [deviceId, object] of Object.entries(devices)) {
    if (!isSound(object) || (ids.length > 0 && !ids.includes(deviceId))) continue
    attempt(() => {
      const keys = readDeviceKeys(object, { userId, deviceId })
      if (!areSelfSigned(keys)) return
      const name = isObject(object.unsigned) ? object.unsigned.device_display_name : undefined
      const isName = typeof name === 'string' && name.length <= MAX_DEVICE_NAME_CHARS
      const unsigned = isName ? { device_display_name: name } : {}
      read.set(deviceId, writeSigned(keys.json, signaturesBy(userId, object), { unsigned }))
    })
  }
  return read
}

/** An error that refuses a local user's keys only drops a remote user's. */
function attempt(read: () => void): void {
  try {
    read()
  } catch {
    // As if the other server had not sent it.
  }
}

function isSound(value: JsonValue | undefined): value is JsonObject {
  return isObject(value) && offenceIn(value) === undefined
}

function memberOf(object: JsonValue | undefined, key: string): JsonValue | undefined {
  return isObject(object) && Object.hasOwn(object, key) ? object[key] : undefined
}

function signaturesBy(userId: UserId, { signatures }: JsonObject): SignatureMap {
  const read: SignatureMap = new Map()
  const own = memberOf(signatures, userId)
  for (const [keyId, signature] of isObject(own) ? Object.entries(own) : []) {
    if (typeof signature === 'string') addSignature(read, userId, keyId, signature)
  }
  return read
}
