import type { UserId } from '../../core/ids.ts'
import { findOpenIdUser, insertOpenIdToken } from '../../store/accounts/openid-tokens.ts'
import type { Database } from '../../store/db/db.ts'
import type { Clock, Random } from '../clock.ts'
import { hashToken, tokenKind } from '../opaque-tokens.ts'
import type { Requester } from './requester.ts'

/** Tokens that tell a third party, such as an identity service, who a local user is (client-server API, "OpenID"). */
export interface OpenIdTokens {
  /** A new token and its lifetime in seconds. */
  issue(requester: Requester): Promise<{ readonly accessToken: string; readonly expiresIn: number }>
  /** The user of a token; undefined if it is unknown or has expired, or if the account is not in use just now. */
  userOf(accessToken: string): Promise<UserId | undefined>
}

const OPENID_TOKENS = tokenKind('hearth_openid_')
const LIFETIME_SECONDS = 3600

export function createOpenIdTokens(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
}): OpenIdTokens {
  const { db, clock, random } = deps
  return {
    async issue({ userNid }) {
      const accessToken = OPENID_TOKENS.make(random)
      const expiresAt = clock.now() + LIFETIME_SECONDS * 1000
      await db.tx((tx) => insertOpenIdToken(tx, { hash: hashToken(accessToken), userNid, expiresAt }))
      return { accessToken, expiresIn: LIFETIME_SECONDS }
    },
    async userOf(accessToken) {
      if (!OPENID_TOKENS.recognises(accessToken)) return undefined
      return findOpenIdUser(db, hashToken(accessToken), clock.now())
    },
  }
}
