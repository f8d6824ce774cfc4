import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { Proof } from '../../core/backup/manifest.ts'
import { type SigningKey, verifySignature } from '../../core/signing/key.ts'

/** What a proof is of. A proof of one kind is none of another, and no signature of an event. */
export type ProvedKind = 'manifest' | 'journal' | 'base' | 'log'

/** Gives an HMAC in hex, under a key that the passphrase of the backups opens. */
export type Mac = (text: string) => string

/** By what a reader knows who wrote a backup. */
export interface Trust {
  /** Where the reader gave the passphrase. */
  readonly mac?: Mac | undefined
  /** Public keys of the server: from its key file, or as the operator noted them. Unpadded base64. */
  readonly publicKeys: readonly string[]
  /** Whether the reader gave a passphrase or a secret key: then a backup without encryption is none of theirs. */
  readonly expectsEncryption: boolean
}

/** @param secret what the passphrase opens */
export function macUnder(secret: string): Mac {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'hearth backup proof', 32))
  return (text) => createHmac('sha256', key).update(text).digest('hex')
}

const withKind = (kind: ProvedKind, text: string): string => `hearth backup ${kind}\n${text}`

/** Proves a text, by the signing key of the server and, where there is a passphrase, by that too. */
export function prove(
  kind: ProvedKind,
  text: string,
  by: { readonly mac: Mac | undefined; readonly key: SigningKey },
): Proof {
  const message = withKind(kind, text)
  const { keyId, publicKey } = by.key
  return {
    mac: by.mac?.(message),
    signature: { key_id: keyId, public_key: publicKey, signature: by.key.sign(message) },
  }
}

/**
 * Why a reader must not believe a text; undefined if they may.
 *
 * The passphrase alone decides where it was given. Else the signature must be by a key that the reader knows. Of a backup that is not
 * encrypted the signing key can be read: there a signature by an unknown key says as much as one by a known key.
 */
export function whyUnproved(
  kind: ProvedKind,
  text: string,
  proof: Proof | undefined,
  { mac, publicKeys }: Trust,
  isEncrypted: boolean,
): string | undefined {
  const message = withKind(kind, text)
  if (mac !== undefined) {
    if (typeof proof?.mac !== 'string') return 'it was not made with the passphrase'
    return isSame(mac(message), proof.mac) ? undefined : ALTERED
  }
  const { signature } = proof ?? {}
  if (typeof signature?.public_key !== 'string' || typeof signature.signature !== 'string') return 'it is not signed'
  const { public_key, key_id } = signature
  const isKnown = publicKeys.includes(public_key)
  if (!isKnown && publicKeys.length > 0)
    return `it is signed by ${key_id} ${public_key}, which is no key of this server: if it was one, say --signed-by ${public_key}`
  if (!isKnown && isEncrypted)
    return `it is signed by ${key_id} ${public_key}, and nothing here tells whether that is the key of your server: compare it with what you noted, or with what other servers know, and say --signed-by ${public_key}`
  return verifySignature(public_key, message, signature.signature) ? undefined : ALTERED
}

const ALTERED = 'it was altered after it had been made'

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
