import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { ServerPolicy } from '../core/server-policy.ts'
import type { Outbound } from '../outbound/outbound.ts'
import type { KeyFetcher } from '../outbound/server-keys.ts'
import type { Database } from '../store/db/db.ts'
import type { Ledger } from '../store/db/ledger.ts'
import type { Sessions } from './accounts/sessions.ts'
import type { Diagnostics } from './admin/diagnostics.ts'
import type { Clock, Random } from './clock.ts'
import type { NodeLease } from './cluster/node-lease.ts'
import type { ServerKeyRing } from './federation/key-ring.ts'
import type { OwnKeys } from './federation/own-keys.ts'
import type { OwnSigningKey } from './federation/own-signing-key.ts'
import type { IdentityKeyRing } from './identity/keys.ts'
import type { Messenger } from './identity/messenger.ts'
import type { Metrics } from './metrics.ts'
import type { Pages } from './pages.ts'
import type { RateLimitOverrides } from './rate-limit-overrides.ts'
import type { RateLimits } from './rate-limits.ts'
import type { Restores } from './restores.ts'
import type { Tracing } from './tracing.ts'
import type { Users } from './users.ts'

/**
 * What a homeserver and a standalone identity service both need: the database, outgoing calls, keys, messages to people. Each area says
 * which of these it takes.
 */
export interface Base {
  readonly config: Config
  readonly db: Database
  /** The place of this process among the nodes. */
  readonly node: NodeLease
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  /** Where spans go, if they go anywhere. */
  readonly tracing: Tracing | undefined
  readonly diagnostics: Diagnostics
  /** This server's own release: `0.1.0`. */
  readonly version: string
  /** Which servers this server talks to. */
  readonly policy: ServerPolicy
  readonly signingKey: OwnSigningKey
  readonly identityKeys: IdentityKeyRing
  /** Cached keys of other servers. */
  readonly serverKeys: ServerKeyRing
  /** Fetches keys from other servers. */
  readonly fetcher: KeyFetcher
  /** Outgoing calls. */
  readonly outbound: Outbound
  /** Sends mails and text messages. */
  readonly messenger: Messenger
  /** Pages for people. */
  readonly pages: Pages
  /** Whether the database answers. */
  ready(): Promise<boolean>
}

/** What a homeserver needs in addition, before it has rooms and accounts. */
export interface HomeserverBase extends Base {
  readonly ledger: Ledger
  readonly restores: Restores
  readonly users: Users
  readonly sessions: Sessions
  readonly rateLimits: RateLimits
  readonly rateLimitOverrides: RateLimitOverrides
  readonly ownKeys: OwnKeys
}
