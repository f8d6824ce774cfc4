import { hash } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import type { SessionRow } from '../../store/identity/sessions.ts'

/** How long sessions last, and how many wrong tokens each allows. */
export interface SessionRules {
  readonly lifetimeMs: number
  readonly allowedWrong: Readonly<Record<SessionRow['medium'], number>>
  /** Whether a session has had too many wrong tokens. */
  isSpent(row: SessionRow): boolean
}

export const HOUR_MS = 3_600_000

export function sessionRules(options: Config['identity']['sessions']): SessionRules {
  const allowedWrong = { email: options.max_wrong_mail_tokens, msisdn: options.max_wrong_sms_tokens }
  return {
    lifetimeMs: options.lifetime_hours * HOUR_MS,
    allowedWrong,
    isSpent: (row) => row.wrong_tokens >= allowedWrong[row.medium],
  }
}

export const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')
export const tokenHash = (sid: string, token: string): Buffer => sha256(`${sid}\0${token}`)
