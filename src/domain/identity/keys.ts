import type { Config } from '../../config/schema.ts'
import { decodeBase64, encodeBase64 } from '../../core/base64.ts'
import type { JsonObject } from '../../core/json.ts'
import { type Signatures, signJson } from '../../core/signing/json-signature.ts'
import { type SigningKey, signingKeyFromSeed } from '../../core/signing/key.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import { insertEphemeralKey, isEphemeralKey } from '../../store/identity/ephemeral-keys.ts'
import type { Clock, Random } from '../clock.ts'

/** An old long-term key that is still recognised. */
export interface OldKey {
  readonly keyId: string
  /** Unpadded base64. */
  readonly publicKey: string
}

/** The long-term keys of the identity service. */
export interface IdentityKeyRing {
  readonly current: SigningKey
  readonly old: readonly OldKey[]
}

/** A short-term key for one invitation. Both halves in unpadded base64; the private one is never stored. */
export interface EphemeralKey {
  readonly publicKey: string
  readonly privateKey: string
}

/** Keys of both kinds (identity service API, "Key management"). */
export interface IdentityKeys {
  /** The long-term key in use. */
  readonly current: SigningKey
  /** The public half of a long-term key, in unpadded base64. */
  publicKeyOf(keyId: string): string | undefined
  /** Whether this is a current or old long-term key, in either alphabet of base64, padded or not. */
  isValid(publicKey: string): boolean
  /** The same for a short-term key: made here and not expired. */
  isValidEphemeral(publicKey: string): Promise<boolean>
  /** Makes a short-term key with the invitation that it is for. It expires at a time or never. */
  createEphemeral(tx: Tx, expiresAt?: number): Promise<EphemeralKey>
  /** The object with this service's signature, under its server name. */
  sign<T extends JsonObject>(object: T): T & { signatures: Signatures }
}

const SEED_BYTES = 32

/** The normal form in which keys are compared. A query may have turned `+` into a space. */
function normalised(publicKey: string): string | undefined {
  const bytes = decodeBase64(publicKey.replaceAll(' ', '+'))
  return bytes?.length === 32 ? encodeBase64(bytes) : undefined
}

export function createIdentityKeys(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly keyRing: IdentityKeyRing
}): IdentityKeys {
  const { config, db, clock, random, keyRing } = deps
  const { current } = keyRing
  const longTerm = new Map([...keyRing.old, current].map(({ keyId, publicKey }) => [keyId, publicKey]))
  const known = new Set([...keyRing.old, current].map(({ publicKey }) => normalised(publicKey)))

  return {
    current,
    publicKeyOf: (keyId) => longTerm.get(keyId),
    isValid(publicKey) {
      const key = normalised(publicKey)
      return key !== undefined && known.has(key)
    },
    async isValidEphemeral(publicKey) {
      const key = normalised(publicKey)
      return key !== undefined && isEphemeralKey(db, key, clock.now())
    },
    async createEphemeral(tx, expiresAt) {
      const seed = random.bytes(SEED_BYTES)
      const { publicKey } = signingKeyFromSeed('ed25519:0', seed)
      await insertEphemeralKey(tx, { publicKey, createdAt: clock.now(), expiresAt })
      return { publicKey, privateKey: encodeBase64(seed) }
    },
    sign: (object) => signJson(object, config.server_name, current),
  }
}
