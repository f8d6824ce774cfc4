import type { UserId } from '../../core/ids.ts'

/** Keys of users as JSON texts, ready to send. */
export interface KnownKeys {
  /** By user and device. A user without an entry is unknown. */
  readonly devices: Map<UserId, ReadonlyMap<string, string>>
  readonly master: Map<UserId, string>
  readonly self_signing: Map<UserId, string>
  readonly user_signing: Map<UserId, string>
}

/** By signer, then by the name of the signing key. */
export type SignatureMap = Map<UserId, Map<string, string>>

export function noKeys(): KnownKeys {
  return { devices: new Map(), master: new Map(), self_signing: new Map(), user_signing: new Map() }
}

export function addSignature(signatures: SignatureMap, signer: UserId, keyId: string, signature: string): void {
  const own = signatures.get(signer) ?? new Map<string, string>()
  signatures.set(signer, own.set(keyId, signature))
}

/**
 * A signed object as JSON.
 *
 * @param json canonical JSON of everything except the signatures; not parsed again
 * @param beside for a device's keys what the server adds (`unsigned`); for a cross-signing key, which stays as it was uploaded, the value
 *   of `signatures` if there are none (`empty`, JSON)
 */
export function writeSigned(
  json: string,
  signatures: SignatureMap,
  { unsigned, empty = null }: { readonly unsigned?: object; readonly empty?: string | null } = {},
): string {
  const tail = unsigned === undefined ? '' : `,"unsigned":${JSON.stringify(unsigned)}`
  if (signatures.size === 0 && unsigned === undefined) {
    return empty === null ? json : `${json.slice(0, -1)},"signatures":${empty}}`
  }
  const all = Object.fromEntries([...signatures].map(([signer, own]) => [signer, Object.fromEntries(own)]))
  return `${json.slice(0, -1)},"signatures":${JSON.stringify(all)}${tail}}`
}
