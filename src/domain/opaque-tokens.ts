import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Random } from './clock.ts'

/** Tokens of one kind. A prefix tells the kinds apart. */
export interface TokenKind {
  /** A new token: 256 random bits between a prefix, by which secret scanners recognise it, and a checksum. */
  make(random: Random): string
  /** Whether a text has the form of such a token. */
  recognises(text: string): boolean
}

const SECRET_BYTES = 32

export function tokenKind(prefix: string): TokenKind {
  const checksum = (secret: string): string => crc32(secret).toString(16).padStart(8, '0')
  return {
    make(random) {
      const secret = random.bytes(SECRET_BYTES).toString('base64url')
      return `${prefix}${secret}_${checksum(secret)}`
    },
    recognises(text) {
      const end = text.length - 9
      return (
        text.startsWith(prefix) && text[end] === '_' && checksum(text.slice(prefix.length, end)) === text.slice(end + 1)
      )
    },
  }
}

/** What is stored instead of a token: its SHA-256. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
