import { decodeBase64, encodeBase64 } from '../../core/base64.ts'
import type { VerifyKey } from '../../core/event/signers.ts'
import type { ServerName } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import { PUBLIC_KEY_BYTES } from '../../core/signing/ed25519.ts'
import { signatureOf, signedText } from '../../core/signing/json-signature.ts'
import { verifySignature } from '../../core/signing/key.ts'
import { MAX_KEYS_PER_ANSWER } from '../limits.ts'

export interface ServerKey extends VerifyKey {
  /** An old key. Signatures from before `validUntilTs` stay valid. */
  readonly isOld: boolean
}

/** The longest time for which an answer's keys count, so that a stolen key can be withdrawn (server-server API, "Publishing Keys"). */
export const LONGEST_VALIDITY_MS = 7 * 24 * 3_600_000

const KEY_ID = /^ed25519:[^\0]{1,200}$/

/** Keys whose private halves are public knowledge (CVE-2026-24044). Their signatures are never accepted. */
const EXPOSED = new Set(['l/O9hxMVKB6Lg+3Hqf0FQQZhVESQcMzbPN1Cz2nM3og'])

/** @param publicKey in base64 of any variant */
export function isExposed(publicKey: string): boolean {
  return EXPOSED.has(encodeBase64(decodeBase64(publicKey) ?? Buffer.alloc(0)))
}

/**
 * Checks a server's key document (server-server API, `GET K/server`), whether it came from the server or a notary.
 *
 * @returns undefined unless it is about `server`, at least one current key has signed it, and no signature of these keys is invalid
 */
export function readKeyAnswer(server: ServerName, answer: JsonObject, now: number): readonly ServerKey[] | undefined {
  const { server_name, valid_until_ts, verify_keys, old_verify_keys } = answer
  if (server_name !== server || !isMoment(valid_until_ts)) return undefined
  const limit = now + LONGEST_VALIDITY_MS
  const current = listed(verify_keys).map(([keyId, { key }]) => ({
    ...{ keyId, publicKey: key, isOld: false },
    validUntilTs: Math.min(valid_until_ts, limit),
  }))
  if (!isSignedByItsKeys(server, answer, current)) return undefined
  // Whatever the answer says, an old key signs nothing from now on.
  const old = listed(old_verify_keys).flatMap(([keyId, { key, expired_ts }]) =>
    isMoment(expired_ts) ? [{ keyId, publicKey: key, isOld: true, validUntilTs: Math.min(expired_ts, now - 1) }] : [],
  )
  const inUse = new Set(current.map(({ keyId }) => keyId))
  return [...current, ...old.filter(({ keyId }) => !inUse.has(keyId))]
}

function isSignedByItsKeys(server: ServerName, answer: JsonObject, keys: readonly ServerKey[]): boolean {
  const text = Buffer.from(signedText(answer))
  const signed = keys.flatMap(({ keyId, publicKey }) => {
    const signature = signatureOf(answer, server, keyId)
    return signature === undefined ? [] : [verifySignature(publicKey, text, signature)]
  })
  return signed.length > 0 && signed.every(Boolean)
}

/** The valid ed25519 keys of a list. */
function listed(keys: JsonValue | undefined): (readonly [string, JsonObject & { readonly key: string }])[] {
  if (!isObject(keys)) return []
  return Object.entries(keys)
    .slice(0, MAX_KEYS_PER_ANSWER)
    .flatMap(([keyId, value]) => (KEY_ID.test(keyId) && hasKey(value) ? [[keyId, value] as const] : []))
}

function hasKey(value: JsonValue): value is JsonObject & { key: string } {
  if (!isObject(value) || typeof value.key !== 'string' || isExposed(value.key)) return false
  return decodeBase64(value.key)?.length === PUBLIC_KEY_BYTES
}

function isMoment(value: JsonValue | undefined): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
