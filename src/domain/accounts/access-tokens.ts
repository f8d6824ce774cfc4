import { createHash } from 'node:crypto'
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

/** What is stored instead of a token; undefined for a text that was never a token of this server. */
export function hashAccessToken(token: string): Buffer | undefined {
  const end = token.length - 9
  if (!token.startsWith(PREFIX) || token[end] !== '_') return undefined
  const secret = token.slice(PREFIX.length, end)
  if (checksum(secret) !== token.slice(end + 1)) return undefined
  return createHash('sha256').update(token).digest()
}
