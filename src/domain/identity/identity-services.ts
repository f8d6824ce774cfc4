import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import { forgetIdentityTokens } from '../../store/identity/accounts.ts'
import { forgetEphemeralKeys } from '../../store/identity/ephemeral-keys.ts'
import { forgetInvites } from '../../store/identity/invites.ts'
import { forgetLookupChanges } from '../../store/identity/lookup-changes.ts'
import { forgetLookups } from '../../store/identity/lookup-quota.ts'
import { forgetFullBuckets } from '../../store/identity/send-limits.ts'
import { forgetSessions } from '../../store/identity/sessions.ts'
import type { OpenIdTokens } from '../accounts/openid-tokens.ts'
import type { Clock, Random } from '../clock.ts'
import { LOOKUP_CHANGES_KEPT, LOOKUP_QUOTA_MS } from '../limits.ts'
import { identityBaseUrl } from '../public-address.ts'
import type { KeyRing } from '../rooms/receive/federation-queries.ts'
import { createIdentityAccounts, type IdentityAccounts } from './accounts.ts'
import { type Bindings, createBindings } from './bindings.ts'
import { createDueDeliveries, type DueDeliveries } from './deliveries.ts'
import { createHomeserverRequests, type HomeserverRequests } from './homeserver-requests.ts'
import type { IdentityMetrics } from './identity-metrics.ts'
import { createInvitations, type Invitations } from './invitations.ts'
import { isIdentityServed } from './is-served.ts'
import { createIdentityKeys, type IdentityKeyRing, type IdentityKeys } from './keys.ts'
import { createLookup, type Lookup } from './lookup.ts'
import { createLookupQuota } from './lookup-quota.ts'
import type { Messenger } from './messenger.ts'
import type { OpenIdVerifier } from './openid-verifier.ts'
import { createPepperRotation, type PepperRotation } from './pepper-rotation.ts'
import { createPersonDesk, type PersonDesk } from './person-desk.ts'
import { createSendLimits } from './send-limits.ts'
import { EXPIRED_KEPT_MS } from './session-proofs.ts'
import { createValidationSessions, type Realm, type ValidationSessions } from './sessions.ts'
import { createTerms, type Terms } from './terms.ts'

/** The services of the identity role, as endpoints call them. */
export interface IdentityServices {
  readonly accounts: IdentityAccounts
  readonly terms: Terms
  readonly keys: IdentityKeys
  readonly sessions: ValidationSessions
  readonly bindings: Bindings
  readonly homeserverRequests: HomeserverRequests
  readonly lookup: Lookup
  readonly pepperRotation: PepperRotation
  readonly invitations: Invitations
  readonly dueDeliveries: DueDeliveries
  readonly people: PersonDesk
}

export interface IdentityParts {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  /** The homeserver's own tokens, if it is in this process. */
  readonly openIdTokens: Pick<OpenIdTokens, 'userOf'>
  /** Verifies tokens with other homeservers. */
  readonly openIdVerifier: OpenIdVerifier
  readonly keyRing: IdentityKeyRing
  /** Sends mails and text messages. The code that opened it closes it. */
  readonly messenger: Messenger
  /** Keys of homeservers, which may unbind their users. */
  readonly serverKeys: KeyRing
  readonly metrics: IdentityMetrics
  readonly log: Logger
}

/** Wires the services of the identity role. */
export function createIdentityServices(parts: IdentityParts): IdentityServices {
  const { config, db, clock, random, openIdTokens, openIdVerifier, keyRing, messenger, serverKeys, metrics, log } =
    parts
  const keys = createIdentityKeys({ config, db, clock, random, keyRing })
  const sendLimits = createSendLimits({ config, db, clock })
  const quota = createLookupQuota({ config, db, clock })
  const realm = identityRealm(config)
  const sessions = createValidationSessions({ config, db, clock, random, messenger, sendLimits, realm, metrics })
  const lookup = createLookup({ config, db, quota, keys, metrics, log })
  const pepperRotation = createPepperRotation({ db, clock, random })
  if (isIdentityServed(config)) metrics.watch({ remembered: lookup.remembered, rotation: pepperRotation.levels })
  const dueDeliveries = createDueDeliveries()
  const accounts = createIdentityAccounts({ config, db, clock, random, openIdTokens, openIdVerifier })
  const terms = createTerms({ config, db, clock })
  const bindings = createBindings({ db, clock, keys, sessions, deliveries: dueDeliveries, metrics })
  return {
    accounts,
    terms,
    keys,
    sessions,
    bindings,
    homeserverRequests: createHomeserverRequests({ config, clock, serverKeys }),
    lookup,
    pepperRotation,
    invitations: createInvitations({ config, db, clock, random, keys, messenger, quota, sendLimits, metrics }),
    dueDeliveries,
    people: createPersonDesk({ db, accounts, terms, bindings }),
  }
}

function identityRealm(config: Pick<Config, 'public_base_url' | 'listen' | 'identity'>): Realm {
  return {
    name: 'identity',
    template: 'validate-email.mail',
    submitUrl: (dialect) => `${identityBaseUrl(config)}/_${dialect}/identity/v2/validate/email/submitToken`,
  }
}

type Chore = (tx: Tx, now: number, atMost: number) => Promise<number>

/** The time of a token's last use is only known to a few minutes. */
const TOKEN_GRACE_MS = 3_600_000
/** A user who is late with the mail of a delivered invitation may still sign for it. */
const DELIVERED_KEPT_MS = 30 * 86_400_000

/** Deletes expired rows of the identity role. Each chore deletes a limited number and returns how many. */
export function identityChores(config: Pick<Config, 'identity'>): readonly Chore[] {
  const lifetimeMs = config.identity.tokens.lifetime_hours * 3_600_000
  return [
    forgetEphemeralKeys,
    forgetFullBuckets,
    (tx, _now, atMost) => forgetLookupChanges(tx, LOOKUP_CHANGES_KEPT, atMost),
    (tx, now, atMost) => forgetLookups(tx, now - LOOKUP_QUOTA_MS, atMost),
    (tx, now, atMost) => forgetInvites(tx, now, now - DELIVERED_KEPT_MS, atMost),
    (tx, now, atMost) => forgetSessions(tx, now - EXPIRED_KEPT_MS, atMost),
    async (tx, now, atMost) =>
      lifetimeMs === 0 ? 0 : forgetIdentityTokens(tx, now - lifetimeMs - TOKEN_GRACE_MS, atMost),
  ]
}
