import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import { insertLoginToken, takeLoginToken } from '../../store/accounts/login-tokens.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { Clock, Random } from '../clock.ts'
import { hashToken, tokenKind } from '../opaque-tokens.ts'
import { accountLocked } from './requester.ts'

/** Tokens that allow one login (client-server API, "Token-based user login"). */
export interface LoginTokens {
  /** @param provenAt when the user proved who they are, if they did so for this token */
  issue(userNid: number, provenAt?: number): Promise<{ readonly token: string; readonly expiresInMs: number }>
  /** Consumes a token and returns its user. @throws ProtocolError `M_FORBIDDEN`, `M_USER_DEACTIVATED`, `M_USER_LOCKED` */
  redeem(tx: Tx, token: string): Promise<LoginTokenUser>
}

export interface LoginTokenUser {
  readonly userNid: number
  readonly userId: UserId
  /** When they proved who they are; undefined if that is not known. */
  readonly provenAt: number | undefined
}

const LOGIN_TOKENS = tokenKind('hearth_login_')

export function createLoginTokens(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly config: Pick<Config, 'login_tokens'>
}): LoginTokens {
  const { db, clock, random, config } = deps
  const expiresInMs = config.login_tokens.lifetime_seconds * 1000
  return {
    async issue(userNid, provenAt) {
      const token = LOGIN_TOKENS.make(random)
      await db.tx((tx) =>
        insertLoginToken(tx, { hash: hashToken(token), userNid, expiresAt: clock.now() + expiresInMs, provenAt }),
      )
      return { token, expiresInMs }
    },
    async redeem(tx, token) {
      const found = LOGIN_TOKENS.recognises(token) ? await takeLoginToken(tx, hashToken(token), clock.now()) : undefined
      if (found === undefined) {
        throw new ProtocolError('M_FORBIDDEN', 'This login token is not known, has expired, or was used already.')
      }
      if (found.deactivated_at !== null) {
        throw new ProtocolError('M_USER_DEACTIVATED', 'This account has been deactivated.')
      }
      if (found.is_locked) throw accountLocked()
      return { userNid: found.user_nid, userId: found.user_id, provenAt: found.proven_at ?? undefined }
    },
  }
}
