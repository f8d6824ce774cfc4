import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { createRequire } from 'node:module'

/** An implementation of ed25519 over raw keys: 32-byte seeds and public keys, 64-byte signatures. */
export interface Ed25519 {
  keyPair(seed: Uint8Array): { readonly publicKey: Buffer; sign(message: Uint8Array): Buffer }
  /** Prepares a public key of 32 bytes for many verifications. */
  verifier(publicKey: Uint8Array): Verifier
}

export type Verifier = (message: Uint8Array, signature: Uint8Array) => boolean

export const SEED_BYTES = 32
export const PUBLIC_KEY_BYTES = 32
export const SIGNATURE_BYTES = 64

/** The used functions of the optional package, which has no types of its own. */
interface Sodium {
  crypto_sign_seed_keypair(publicKey: Buffer, secretKey: Buffer, seed: Uint8Array): void
  crypto_sign_detached(signature: Buffer, message: Uint8Array, secretKey: Buffer): void
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean
}

const requireHere = createRequire(import.meta.url)

function loadSodium(): Sodium | undefined {
  try {
    return requireHere('sodium-native') as Sodium
  } catch {
    return undefined
  }
}

/** The path of libsodium's module, for other threads; undefined if it does not load. */
export function sodiumFile(): string | undefined {
  return sodiumEd25519 && requireHere.resolve('sodium-native')
}

/** libsodium, about twice as fast as OpenSSL. Undefined if its prebuilt binary does not load. */
export const sodiumEd25519: Ed25519 | undefined = overSodium(loadSodium())

function overSodium(sodium: Sodium | undefined): Ed25519 | undefined {
  return (
    sodium && {
      keyPair(seed) {
        const publicKey = Buffer.alloc(PUBLIC_KEY_BYTES)
        const secretKey = Buffer.alloc(SEED_BYTES + PUBLIC_KEY_BYTES)
        sodium.crypto_sign_seed_keypair(publicKey, secretKey, seed)
        const signWith = (message: Uint8Array): Buffer => {
          const signature = Buffer.allocUnsafe(SIGNATURE_BYTES)
          sodium.crypto_sign_detached(signature, message, secretKey)
          return signature
        }
        return { publicKey, sign: signWith }
      },
      verifier: (publicKey) => (message, signature) =>
        signature.length === SIGNATURE_BYTES && sodium.crypto_sign_verify_detached(signature, message, publicKey),
    }
  )
}

/** The DER frame of an ed25519 private key (RFC 8410); its last 32 bytes are the seed. */
const PKCS8_FRAME = Buffer.from('302e020100300506032b657004220420', 'hex')

/** OpenSSL, which every Node has. */
export const nodeEd25519: Ed25519 = {
  keyPair(seed) {
    const key = createPrivateKey({ key: Buffer.concat([PKCS8_FRAME, seed]), format: 'der', type: 'pkcs8' })
    const publicKey = Buffer.from(createPublicKey(key).export({ format: 'jwk' }).x!, 'base64url')
    return { publicKey, sign: (message) => sign(null, message, key) }
  },
  verifier(publicKey) {
    const key = publicKeyObject(publicKey)
    return (message, signature) => verify(null, message, key, signature)
  },
}

function publicKeyObject(publicKey: Uint8Array): KeyObject {
  const x = Buffer.from(publicKey).toString('base64url')
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
}
