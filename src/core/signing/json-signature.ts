import { isObject, type JsonObject } from '../json.ts'
import { encodeCanonical } from './canonical-json.ts'
import { type SigningKey, verifySignature } from './key.ts'

export type Signatures = { [server: string]: { [keyId: string]: string } }

/** The text that signatures of a JSON object cover: everything except `signatures` and `unsigned` (appendices, "Signing Details"). */
export function signedText(object: JsonObject): string {
  const { signatures, unsigned, ...signed } = object
  return encodeCanonical(signed)
}

/** The object with a signature of `server` added to those it has. */
export function signJson<T extends JsonObject>(
  object: T,
  server: string,
  key: SigningKey,
): T & { signatures: Signatures } {
  return { ...object, signatures: addSignature(object, server, key.keyId, key.sign(signedText(object))) }
}

/** The object's `signatures` with one more. */
export function addSignature(object: JsonObject, server: string, keyId: string, signature: string): Signatures {
  const all = isObject(object.signatures) ? (object.signatures as Signatures) : {}
  return { ...all, [server]: { ...all[server], [keyId]: signature } }
}

/** Whether the object carries a valid signature of `server` under `keyId` (appendices, "Checking for a Signature", steps 4 to 7). */
export function verifyJson(object: JsonObject, server: string, keyId: string, publicKey: string): boolean {
  const signature = signatureOf(object, server, keyId)
  return signature !== undefined && verifySignature(publicKey, signedText(object), signature)
}

/** The signature found under a server's name and key id. */
export function signatureOf(object: JsonObject, server: string, keyId: string): string | undefined {
  const all = object.signatures
  const own = isObject(all) && Object.hasOwn(all, server) ? all[server] : undefined
  const signature = isObject(own) && Object.hasOwn(own, keyId) ? own[keyId] : undefined
  return typeof signature === 'string' ? signature : undefined
}
