import type { UserId } from '../ids.ts'
import type { JsonObject } from '../json.ts'
import { signatureOf } from '../signing/json-signature.ts'
import { verifySignature } from '../signing/key.ts'
import { invalidSignature, isPublicKey, malformed, requireObject, requireText, signedJson } from './key-offence.ts'

/** The identity keys of a device, checked. */
export interface DeviceKeys {
  /** Canonical JSON without `signatures` and `unsigned`. */
  readonly json: string
  /** The device's own. */
  readonly signature: string
  /** What the device signs with. */
  readonly ed25519: string
}

const MAX_ALGORITHMS = 32
const MAX_ALGORITHM_CHARS = 255

/**
 * Reads what a device says of itself (client-server API, "Device keys").
 *
 * Of its signatures the device's own is kept; others come by way of `keys/signatures/upload`.
 * @throws ProtocolError `M_INVALID_PARAM`, `M_INVALID_SIGNATURE`
 */
export function readDeviceKeys(object: JsonObject, of: { userId: UserId; deviceId: string }): DeviceKeys {
  const { userId, deviceId } = of
  if (object.user_id !== userId) throw malformed(`'device_keys.user_id' must be ${userId}.`)
  if (object.device_id !== deviceId) throw malformed(`'device_keys.device_id' must be ${JSON.stringify(deviceId)}.`)
  checkAlgorithms(object.algorithms)
  const ed25519 = readKeys(requireObject('device_keys.keys', object.keys), deviceId)
  const json = signedJson('device_keys', object)
  requireObject('device_keys.signatures', object.signatures)
  const signature = signatureOf(object, userId, `ed25519:${deviceId}`)
  if (signature === undefined || !verifySignature(ed25519, json, signature)) {
    throw invalidSignature("'device_keys' must be signed by the device's own ed25519 key.")
  }
  return { json, signature, ed25519 }
}

function checkAlgorithms(algorithms: JsonObject[string] | undefined): void {
  if (!Array.isArray(algorithms) || algorithms.length > MAX_ALGORITHMS) {
    throw malformed(`'device_keys.algorithms' must be a list of up to ${MAX_ALGORITHMS} names.`)
  }
  for (const name of algorithms) {
    if (requireText('device_keys.algorithms', name).length > MAX_ALGORITHM_CHARS) {
      throw malformed("'device_keys.algorithms' holds a name that is too long.")
    }
  }
}

/** Each key is named `<algorithm>:<device id>`. Gives the one that signs. */
function readKeys(keys: JsonObject, deviceId: string): string {
  for (const name of Object.keys(keys)) {
    const value = requireText('device_keys.keys', keys[name])
    const algorithm = name.slice(0, name.indexOf(':'))
    if (algorithm === '' || name !== `${algorithm}:${deviceId}`) {
      throw malformed(`A key of 'device_keys.keys' must be named <algorithm>:${deviceId}.`)
    }
    const isKnown = algorithm === 'ed25519' || algorithm === 'curve25519'
    if (isKnown && !isPublicKey(value)) throw malformed(`The ${algorithm} key of the device is no key.`)
  }
  const name = `ed25519:${deviceId}`
  if (!Object.hasOwn(keys, name)) throw malformed(`'device_keys.keys' lacks ${name}.`)
  return keys[name] as string
}

/** What a device signs with, from the JSON of keys that were checked. */
export function signingKeyOf(json: string, deviceId: string): string {
  const { keys } = JSON.parse(json) as { keys: Record<string, string> }
  return keys[`ed25519:${deviceId}`]!
}
