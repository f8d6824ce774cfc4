import { hash } from 'node:crypto'
import type { Medium } from './threepid.ts'

/** How addresses may be given to a lookup: as they are, or hashed with the service's pepper. */
export const LOOKUP_ALGORITHMS = ['sha256', 'none'] as const
export type LookupAlgorithm = (typeof LOOKUP_ALGORITHMS)[number]

/** The bytes of {@link lookupHash}. */
export const LOOKUP_HASH_BYTES = 32

/**
 * The form of an address under algorithm `sha256`: URL-safe base64 without padding (identity service API, "Security considerations"
 * of "Association lookup").
 *
 * @param address normalised (core/threepid.ts): another spelling has another hash
 */
export function lookupHash(address: string, medium: Medium, pepper: string): string {
  return hash('sha256', `${address} ${medium} ${pepper}`, 'buffer').toString('base64url')
}

/** 43 characters, the last of which has two bits that stand for nothing: other spellings of the same bytes are no hash. */
const HASHED_ENTRY = /^[\w-]{42}[AEIMQUYcgkosw048]$/

/** Whether this can be what {@link lookupHash} wrote; anything else matches nothing. */
export function isHashedLookupEntry(entry: string): boolean {
  return HASHED_ENTRY.test(entry)
}

/** The bytes of hashed entries, end to end. */
export function lookupHashBytes(entries: readonly string[]): Buffer {
  const bytes = Buffer.alloc(entries.length * LOOKUP_HASH_BYTES)
  entries.forEach((entry, n) => {
    bytes.write(entry, n * LOOKUP_HASH_BYTES, LOOKUP_HASH_BYTES, 'base64url')
  })
  return bytes
}

/** The form of an address under algorithm `none`. */
export function plainLookupEntry(address: string, medium: Medium): string {
  return `${address} ${medium}`
}

/** What {@link plainLookupEntry} wrote; undefined for what cannot be one, which then matches nothing. */
export function readPlainLookupEntry(entry: string): { address: string; medium: string } | undefined {
  const space = entry.lastIndexOf(' ')
  return space < 1 ? undefined : { address: entry.slice(0, space), medium: entry.slice(space + 1) }
}
