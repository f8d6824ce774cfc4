import { hash } from 'node:crypto'
import type { Random } from '../clock.ts'
import { tokenKind } from '../opaque-tokens.ts'

const PREFIX = 'hearth_'
const ACCESS_TOKENS = tokenKind(PREFIX)
const REFRESH_TOKENS = tokenKind('hearth_refresh_')

export function newAccessToken(random: Random): string {
  return ACCESS_TOKENS.make(random)
}

/** Whether a text has the form of an access token of this server. */
export function isAccessToken(token: string): boolean {
  return ACCESS_TOKENS.recognises(token)
}

/** Whether it may have: this says so without a look at the checksum. */
export function mayBeAccessToken(token: string): boolean {
  return token.startsWith(PREFIX)
}

export function newRefreshToken(random: Random): string {
  return REFRESH_TOKENS.make(random)
}

export function isRefreshToken(token: string): boolean {
  return REFRESH_TOKENS.recognises(token)
}

/** What is stored instead of a token: its SHA-256 in base64. */
export function hashAccessToken(token: string): string {
  return hash('sha256', token, 'base64')
}
