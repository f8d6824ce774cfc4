import { randomBytes } from 'node:crypto'
import { encodeBase64 } from '../../src/core/base64.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { signJson } from '../../src/core/signing/json-signature.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import type { Account } from '../support/api.ts'

/** The keys that a client makes for its device. */
export interface DeviceMaker {
  /** What signs for the device: `ed25519:<device id>`. */
  readonly key: SigningKey
  /** `device_keys`, signed, with changes made before signing. */
  identity(changes?: JsonObject): JsonObject
  /** `one_time_keys` or `fallback_keys` of so many new keys, each signed. */
  keys(count: number): JsonObject
  /** One key of a name, with these changes made before signing. */
  named(name: string, changes?: JsonObject): JsonObject
}

export const newPublicKey = (): string => encodeBase64(randomBytes(32))

export function deviceMaker(of: Pick<Account, 'userId' | 'deviceId'>): DeviceMaker {
  const { userId, deviceId } = of
  const key = signingKeyFromSeed(`ed25519:${deviceId}`, randomBytes(32))
  const curve25519 = newPublicKey()
  let made = 0
  const signed = (object: JsonObject): JsonObject => signJson(object, userId, key)
  const named: DeviceMaker['named'] = (name, changes = {}) => ({ [name]: signed({ key: newPublicKey(), ...changes }) })
  return {
    key,
    named,
    identity: (changes = {}) =>
      signed({
        user_id: userId,
        device_id: deviceId,
        algorithms: ['m.olm.v1.curve25519-aes-sha2', 'm.megolm.v1.aes-sha2'],
        keys: { [`curve25519:${deviceId}`]: curve25519, [`ed25519:${deviceId}`]: key.publicKey },
        ...changes,
      }),
    keys: (count) =>
      Object.assign({}, ...Array.from({ length: count }, () => named(`signed_curve25519:${numbered(made++)}`))),
  }
}

const numbered = (number: number): string => `AAAA${number.toString(36).padStart(4, '0')}`

export type Usage = 'master' | 'self_signing' | 'user_signing'

/** The cross-signing keys of a user. */
export interface CrossSigner {
  /** What signs with it: `ed25519:<public key>`. */
  readonly keys: Readonly<Record<Usage, SigningKey>>
  /** The body of an upload: the three keys, two of them signed by the master key. */
  body(): JsonObject
  /** One of the keys as an object, unsigned. */
  object(usage: Usage): JsonObject
}

export function crossSigner(userId: string): CrossSigner {
  const keys = { master: newSigner(), self_signing: newSigner(), user_signing: newSigner() }
  const object = (usage: Usage): JsonObject => {
    const { publicKey } = keys[usage]
    return { user_id: userId, usage: [usage], keys: { [`ed25519:${publicKey}`]: publicKey } }
  }
  return {
    keys,
    object,
    body: () => ({
      master_key: object('master'),
      self_signing_key: signJson(object('self_signing'), userId, keys.master),
      user_signing_key: signJson(object('user_signing'), userId, keys.master),
    }),
  }
}

function newSigner(): SigningKey {
  const seed = randomBytes(32)
  const { publicKey } = signingKeyFromSeed('ed25519:', seed)
  return signingKeyFromSeed(`ed25519:${publicKey}`, seed)
}
