import type { Config } from '../../config/schema.ts'
import type { Database, Tx } from '../../store/db.ts'
import { forgetIdentityTokens } from '../../store/identity/accounts.ts'
import { forgetEphemeralKeys } from '../../store/identity/ephemeral-keys.ts'
import { forgetFullBuckets } from '../../store/identity/send-limits.ts'
import { forgetSessions } from '../../store/identity/sessions.ts'
import type { OpenIdTokens } from '../accounts/openid-tokens.ts'
import type { Clock, Random } from '../clock.ts'
import { createIdentityAccounts, type IdentityAccounts } from './accounts.ts'
import { createIdentityKeys, type IdentityKeyRing, type IdentityKeys } from './keys.ts'
import type { Messenger } from './messenger.ts'
import type { OpenIdVerifier } from './openid-verifier.ts'
import { createSendLimits } from './send-limits.ts'
import { createValidationSessions, EXPIRED_KEPT_MS, type ValidationSessions } from './sessions.ts'
import { createTerms, type Terms } from './terms.ts'

/** The services of the identity role, as endpoints know them. */
export interface IdentityServices {
  readonly accounts: IdentityAccounts
  readonly terms: Terms
  readonly keys: IdentityKeys
  readonly sessions: ValidationSessions
}

/** Wires the services of the identity role. */
export function createIdentityServices(deps: {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  /** The homeserver's own tokens, where it is in this process. */
  readonly openIdTokens: OpenIdTokens
  /** How other homeservers are asked about theirs. */
  readonly openIdVerifier: OpenIdVerifier
  readonly keyRing: IdentityKeyRing
  /** Sends mails and text messages; whoever opened it closes it. */
  readonly messenger: Messenger
}): IdentityServices {
  return {
    accounts: createIdentityAccounts(deps),
    terms: createTerms(deps),
    keys: createIdentityKeys(deps),
    sessions: createValidationSessions({ ...deps, sendLimits: createSendLimits(deps) }),
  }
}

type Chore = (tx: Tx, now: number, atMost: number) => Promise<number>

/** When a token was last used is known within some minutes only. */
const TOKEN_GRACE_MS = 3_600_000

/** What of the identity role's rows is due for removal at a moment; each removes at most so many and gives how many. */
export function identityChores(config: Pick<Config, 'identity'>): readonly Chore[] {
  const lifetimeMs = config.identity.tokens.lifetime_hours * 3_600_000
  return [
    forgetEphemeralKeys,
    forgetFullBuckets,
    (tx, now, atMost) => forgetSessions(tx, now - EXPIRED_KEPT_MS, atMost),
    async (tx, now, atMost) =>
      lifetimeMs === 0 ? 0 : forgetIdentityTokens(tx, now - lifetimeMs - TOKEN_GRACE_MS, atMost),
  ]
}
