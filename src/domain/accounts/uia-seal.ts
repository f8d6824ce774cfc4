import { createCipheriv, createDecipheriv, createHash, createHmac } from 'node:crypto'
import type { JsonObject } from '../../core/json.ts'
import { encodeCanonical } from '../../core/signing/canonical-json.ts'
import type { Random } from '../clock.ts'
import { MAX_UIA_BODY_BYTES } from '../limits.ts'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** A session's id as it is stored. Somebody who reads the table cannot continue a session. */
export function storedId(id: string): string {
  return createHash('sha256').update(id).digest('base64')
}

/**
 * A hash of the body, keyed with the session's id, which only the client has. The body may hold a new password, and nobody must be able
 * to guess it from the hash.
 */
export function bodyHash(id: string, body: JsonObject): Buffer {
  return createHmac('sha256', id).update(encodeCanonical(body)).digest()
}

const keyOf = (id: string): Buffer => createHmac('sha256', id).update('uia body').digest()

/**
 * The body of a session's first request, encrypted with the session's id. Undefined for a body that is empty or too long to be stored.
 */
export function sealedBody(id: string, body: JsonObject, random: Random): Buffer | undefined {
  if (Object.keys(body).length === 0) return undefined
  const text = Buffer.from(JSON.stringify(body))
  if (text.length > MAX_UIA_BODY_BYTES) return undefined
  const nonce = random.bytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, keyOf(id), nonce)
  const sealed = Buffer.concat([cipher.update(text), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed])
}

export function openedBody(id: string, sealed: Buffer): JsonObject {
  const decipher = createDecipheriv(CIPHER, keyOf(id), sealed.subarray(0, NONCE_BYTES))
  decipher.setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
  const text = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()])
  return JSON.parse(text.toString('utf8')) as JsonObject
}
