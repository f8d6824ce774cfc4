import { decodeBase64, encodeBase64 } from '../base64.ts'
import { type Ed25519, nodeEd25519, PUBLIC_KEY_BYTES, SEED_BYTES, sodiumEd25519, type Verifier } from './ed25519.ts'

/** A server's own key. It signs any bytes: the caller must sign only what it has built itself. */
export interface SigningKey {
  /** `ed25519:version` */
  readonly keyId: string
  /** Unpadded base64. */
  readonly publicKey: string
  /** The signature in unpadded base64. A string is signed as its UTF-8 bytes. */
  sign(message: Uint8Array | string): string
}

const ed25519: Ed25519 = sodiumEd25519 ?? nodeEd25519

/** @param seed the 32 secret bytes; anything else throws */
export function signingKeyFromSeed(keyId: string, seed: Uint8Array): SigningKey {
  if (seed.length !== SEED_BYTES) throw new RangeError(`an ed25519 seed has ${SEED_BYTES} bytes`)
  const pair = ed25519.keyPair(seed)
  return {
    keyId,
    publicKey: encodeBase64(pair.publicKey),
    sign: (message) => encodeBase64(pair.sign(toBytes(message))),
  }
}

/** Whether `signature` is by the holder of `publicKey` (both base64). False for an invalid key or signature; never throws. */
export function verifySignature(publicKey: string, message: Uint8Array | string, signature: string): boolean {
  const bytes = decodeBase64(signature)
  return bytes !== undefined && (verifierOf(publicKey)?.(toBytes(message), bytes) ?? false)
}

const REMEMBERED_KEYS = 5000
/** A cache of prepared keys, which drops the oldest first: with OpenSSL, preparing costs a tenth of a verification. */
const verifiers = new Map<string, Verifier>()

function verifierOf(publicKey: string): Verifier | undefined {
  const known = verifiers.get(publicKey)
  if (known) return known
  const bytes = decodeBase64(publicKey)
  if (bytes?.length !== PUBLIC_KEY_BYTES) return undefined
  const verifier = ed25519.verifier(bytes)
  if (verifiers.size >= REMEMBERED_KEYS) verifiers.delete(verifiers.keys().next().value!)
  verifiers.set(publicKey, verifier)
  return verifier
}

function toBytes(message: Uint8Array | string): Uint8Array {
  return typeof message === 'string' ? Buffer.from(message) : message
}
