import { hash } from 'node:crypto'
import type { Random } from '../clock.ts'
import { tokenKind } from '../opaque-tokens.ts'

const ACCESS_TOKENS = tokenKind('hearth_')

export function newAccessToken(random: Random): string {
  return ACCESS_TOKENS.make(random)
}

/** Whether a text was ever a token of this server. */
export function isAccessToken(token: string): boolean {
  return ACCESS_TOKENS.recognises(token)
}

/** What is stored instead of a token: its SHA-256 in base64. */
export function hashAccessToken(token: string): string {
  return hash('sha256', token, 'base64')
}
