import { hash } from 'node:crypto'
import type { Medium } from './threepid.ts'

/** The forms of addresses in a lookup: hashed with the service's pepper, or plain. */
export const LOOKUP_ALGORITHMS = ['sha256', 'none'] as const
export type LookupAlgorithm = (typeof LOOKUP_ALGORITHMS)[number]

/** The bytes of {@link lookupHash}. */
export const LOOKUP_HASH_BYTES = 32
const LOOKUP_HASH_CHARS = 43

/**
 * The form of an address under algorithm `sha256`: URL-safe base64 without padding (identity service API, "Security considerations"
 * of "Association lookup").
 *
 * @param address normalised (core/threepid.ts): another spelling has another hash
 */
export function lookupHash(address: string, medium: Medium, pepper: string): string {
  return hash('sha256', `${address} ${medium} ${pepper}`, 'buffer').toString('base64url')
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** Greater than any six-bit value. */
const NO_LETTER = 0x40
const LETTERS = Uint8Array.from({ length: 256 }, (_, code) => {
  const value = ALPHABET.indexOf(String.fromCharCode(code))
  return value < 0 ? NO_LETTER : value
})

function letterAt(entry: string, at: number): number {
  const code = entry.charCodeAt(at)
  return code < 256 ? (LETTERS[code] as number) : NO_LETTER
}

/**
 * Decodes a hash that {@link lookupHash} has written. It allocates nothing, because a request has thousands of them.
 *
 * @param into gets the {@link LOOKUP_HASH_BYTES} bytes from `at` on
 * @returns false for anything else, which matches nothing; then those bytes are arbitrary
 */
export function readLookupHash(entry: string, into: Uint8Array, at = 0): boolean {
  if (entry.length !== LOOKUP_HASH_CHARS) return false
  let all = 0
  let to = at
  for (let from = 0; from < 40; from += 4) {
    const a = letterAt(entry, from)
    const b = letterAt(entry, from + 1)
    const c = letterAt(entry, from + 2)
    const d = letterAt(entry, from + 3)
    all |= a | b | c | d
    into[to++] = (a << 2) | (b >> 4)
    into[to++] = (b << 4) | (c >> 2)
    into[to++] = (c << 6) | d
  }
  const a = letterAt(entry, 40)
  const b = letterAt(entry, 41)
  const c = letterAt(entry, 42)
  into[to++] = (a << 2) | (b >> 4)
  into[to] = (b << 4) | (c >> 2)
  // The last two bits must be 0: another spelling of the same bytes is not accepted.
  return (all | a | b | c) < NO_LETTER && (c & 3) === 0
}

/** The form of an address under algorithm `none`. */
export function plainLookupEntry(address: string, medium: Medium): string {
  return `${address} ${medium}`
}

/** Reads what {@link plainLookupEntry} wrote; undefined for any other text, which matches nothing. */
export function readPlainLookupEntry(entry: string): { address: string; medium: string } | undefined {
  const space = entry.lastIndexOf(' ')
  return space < 1 ? undefined : { address: entry.slice(0, space), medium: entry.slice(space + 1) }
}
