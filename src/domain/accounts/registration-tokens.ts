import { createHash, timingSafeEqual } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import {
  hasUsableRegistrationToken,
  isUsableRegistrationToken,
  useRegistrationToken,
} from '../../store/accounts/registration-tokens.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import type { UiaProof } from './interactive-auth.ts'

export const TOKEN_STAGE = 'm.login.registration_token'

/** Tokens that allow a registration: the configured one, and those in the database, which may have a limited number of uses. */
export interface RegistrationTokens {
  /** Whether anybody could register with a token now. */
  isAnyUsable(): Promise<boolean>
  isValid(token: string): Promise<boolean>
  /** The stage `m.login.registration_token`. @throws ProtocolError `M_MISSING_PARAM`, `M_UNAUTHORIZED` */
  prove(auth: JsonObject): Promise<JsonObject>
  /** Counts one use of the proven token, if any, so that nobody exceeds its number of uses. @throws ProtocolError `M_FORBIDDEN` */
  redeem(tx: Tx, proof: UiaProof): Promise<void>
}

/** The grammar of a token (client-server API, "Token-authenticated registration"). No other text is looked up. */
export const REGISTRATION_TOKEN = /^[A-Za-z0-9._~-]{1,64}$/

function sameSecret(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(left), digest(right))
}

export function createRegistrationTokens(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly config: Pick<Config, 'registration'>
}): RegistrationTokens {
  const { db, clock } = deps
  const isConfigured = (token: string): boolean => {
    const configured = deps.config.registration.token
    return configured !== undefined && sameSecret(token, configured)
  }
  const isValid = async (token: string): Promise<boolean> =>
    REGISTRATION_TOKEN.test(token) && (isConfigured(token) || (await isUsableRegistrationToken(db, token, clock.now())))

  return {
    isValid,
    isAnyUsable: async () =>
      deps.config.registration.token !== undefined || hasUsableRegistrationToken(db, clock.now()),
    async prove({ token }) {
      if (typeof token !== 'string') throw new ProtocolError('M_MISSING_PARAM', "Key 'auth.token' is missing.")
      if (!(await isValid(token))) throw new ProtocolError('M_UNAUTHORIZED', 'This registration token is not valid.')
      return isConfigured(token) ? {} : { token }
    },
    async redeem(tx, proof) {
      const token = proof[TOKEN_STAGE]?.token
      if (typeof token !== 'string' || (await useRegistrationToken(tx, token, clock.now()))) return
      throw new ProtocolError('M_FORBIDDEN', 'This registration token was used up meanwhile.')
    },
  }
}
