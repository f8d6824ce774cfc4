import type { UserId } from '../ids.ts'
import type { JsonObject } from '../json.ts'
import { verifySignature } from '../signing/key.ts'
import {
  checkKeySize,
  malformed,
  requireMembers,
  requireObject,
  requireText,
  signaturesBy,
  signedJson,
} from './key-offence.ts'

/** The identity keys of a device, of the right shape. Clients verify the signatures. */
export interface DeviceKeys {
  /** Canonical JSON without `signatures` and `unsigned`. */
  readonly json: string
  /** The device's own signature; empty if there is none. */
  readonly signature: string
  /** The device's signing key, if it has one. */
  readonly ed25519: string | undefined
  /** Other signatures by the user, by the names of the keys that made them. */
  readonly otherSignatures: ReadonlyMap<string, string>
}

const MAX_ALGORITHMS = 32
const MAX_ALGORITHM_CHARS = 255

const REQUIRED = ['user_id', 'device_id', 'algorithms', 'keys', 'signatures']

/**
 * Reads the keys of a device (client-server API, "Device keys").
 *
 * Keeps only signatures by the user; others come through `keys/signatures/upload`.
 * @throws ProtocolError `M_BAD_JSON`, `M_INVALID_PARAM`
 */
export function readDeviceKeys(object: JsonObject, of: { userId: UserId; deviceId: string }): DeviceKeys {
  const { userId, deviceId } = of
  requireMembers('device_keys', object, REQUIRED)
  if (object.user_id !== userId) throw malformed(`'device_keys.user_id' must be ${userId}.`)
  if (object.device_id !== deviceId) throw malformed(`'device_keys.device_id' must be ${JSON.stringify(deviceId)}.`)
  checkAlgorithms(object.algorithms)
  const ed25519 = readKeys(requireObject('device_keys.keys', object.keys), deviceId)
  const json = signedJson('device_keys', object)
  const otherSignatures = signaturesBy(userId, 'device_keys', object)
  checkKeySize('device_keys', json, otherSignatures)
  const signature = otherSignatures.get(`ed25519:${deviceId}`) ?? ''
  otherSignatures.delete(`ed25519:${deviceId}`)
  return { json, signature, ed25519, otherSignatures }
}

/** Whether a device signed its keys itself. */
export function areSelfSigned({ json, signature, ed25519 }: DeviceKeys): boolean {
  return ed25519 !== undefined && verifySignature(ed25519, json, signature)
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

/** Each key is named `<algorithm>:<device id>`. Gives the signing key. */
function readKeys(keys: JsonObject, deviceId: string): string | undefined {
  for (const name of Object.keys(keys)) {
    requireText('device_keys.keys', keys[name])
    const algorithm = name.slice(0, name.indexOf(':'))
    if (algorithm === '' || name !== `${algorithm}:${deviceId}`) {
      throw malformed(`A key of 'device_keys.keys' must be named <algorithm>:${deviceId}.`)
    }
  }
  return keys[`ed25519:${deviceId}`] as string | undefined
}

/** The signing key of a device, if it has one, from the JSON of its keys. */
export function signingKeyOf(json: string, deviceId: string): string | undefined {
  const { keys } = JSON.parse(json) as { keys: Record<string, string> }
  return keys[`ed25519:${deviceId}`]
}
