import type { SigningKey } from '../../core/signing/key.ts'

/** A key that this server signed with before. */
export interface FormerKey {
  readonly keyId: string
  /** Unpadded base64. */
  readonly publicKey: string
  /** What it signed up to this moment (milliseconds) is good. */
  readonly expiredTs: number
}

export interface OwnKeyRing {
  readonly current: SigningKey
  /** The last one first. */
  readonly former: readonly FormerKey[]
}

/** This server's signing key: whoever holds it signs with the key that is in use at that moment. */
export interface OwnSigningKey extends SigningKey {
  readonly former: readonly FormerKey[]
  /** Puts a new key into use, once it is kept. Who calls meanwhile gets the same one. */
  rotate(now: number): Promise<FormerKey>
}

/** While the new key is written down, the old one signs on. */
const TIME_TO_WRITE_MS = 60_000

/** @param renew makes a key, keeps it for the next start, and gives the ring with it in use; the one before is good until `expiredTs` */
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
