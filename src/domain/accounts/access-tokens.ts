import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Random } from '../clock.ts'

/** Tells secret scanners, and people, what they have found. */
const PREFIX = 'hearth_'
const SECRET_BYTES = 32

function checksum(secret: string): string {
  return crc32(secret).toString(16).padStart(8, '0')
}

/** A new access token: 256 random bits between a prefix and a checksum. */
export function newAccessToken(random: Random): string {
  const secret = random.bytes(SECRET_BYTES).toString('base64url')
  return `${PREFIX}${secret}_${checksum(secret)}`
}

/** Whether a text was ever a token of this server. */
export function isAccessToken(token: string): boolean {
  const end = token.length - 9
  return (
    token.startsWith(PREFIX) && token[end] === '_' && checksum(token.slice(PREFIX.length, end)) === token.slice(end + 1)
  )
}

/** What is stored instead of a token: its SHA-256 in base64. */
export function hashAccessToken(token: string): string {
  return hash('sha256', token, 'base64')
}
