import type { SigningKey } from '../../core/signing/key.ts'

/** An old key of this server. */
export interface FormerKey {
  readonly keyId: string
  /** Unpadded base64. */
  readonly publicKey: string
  /** Its signatures from before this time (milliseconds) stay valid. */
  readonly expiredTs: number
}

export interface OwnKeyRing {
  readonly current: SigningKey
  /** The newest first. */
  readonly former: readonly FormerKey[]
}

/** This server's signing key. It always signs with the key that is in use at the moment. */
export interface OwnSigningKey extends SigningKey {
  readonly former: readonly FormerKey[]
  /** Puts a new key into use once it is stored. Concurrent calls get the same one. */
  rotate(now: number): Promise<FormerKey>
}

/** While the new key is being stored, the old one signs. */
const TIME_TO_WRITE_MS = 60_000

/** @param renew makes a key, stores it for the next start, and returns the ring with it in use; the old key is valid until `expiredTs` */
export function createOwnSigningKey(
  first: OwnKeyRing,
  renew: (ring: OwnKeyRing, expiredTs: number) => Promise<OwnKeyRing>,
): OwnSigningKey {
  let ring = first
  let rotating: Promise<FormerKey> | undefined

  async function rotate(now: number): Promise<FormerKey> {
    ring = await renew(ring, now + TIME_TO_WRITE_MS)
    return ring.former[0]!
  }

  return {
    get keyId() {
      return ring.current.keyId
    },
    get publicKey() {
      return ring.current.publicKey
    },
    get former() {
      return ring.former
    },
    sign: (message) => ring.current.sign(message),
    rotate(now) {
      rotating ??= rotate(now).finally(() => {
        rotating = undefined
      })
      return rotating
    },
  }
}
