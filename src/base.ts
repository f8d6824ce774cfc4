import { randomBytes } from 'node:crypto'
import type { ClientConfig } from 'pg'
import type { Logger } from 'pino'
import type { Config } from './config/schema.ts'
import { compileServerPolicy, type ServerPolicy } from './core/server-policy.ts'
import type { Clock, Random } from './domain/clock.ts'
import { createKeyRing } from './domain/federation/key-ring.ts'
import type { OwnSigningKey } from './domain/federation/own-signing-key.ts'
import type { IdentityKeyRing } from './domain/identity/keys.ts'
import { openMessenger } from './domain/identity/messenger.ts'
import { requirePolicyTexts } from './domain/identity/policies.ts'
import type { Metrics } from './domain/metrics.ts'
import { loadPages } from './domain/pages.ts'
import type { Services } from './domain/services.ts'
import { openOutbound } from './outbound/outbound.ts'
import { createKeyFetcher } from './outbound/server-keys.ts'
import { openDatabase } from './store/db/db.ts'

export interface ContextOptions {
  readonly config: Config
  readonly connection: ClientConfig
  readonly signingKey: OwnSigningKey
  readonly identityKeys: IdentityKeyRing
  /** With whom this server deals; by the configuration, where nobody gives another. */
  readonly policy?: ServerPolicy
  readonly version: string
  /** The machine's own, where nobody gives another. */
  readonly clock?: Clock
  readonly metrics: Metrics
  readonly log: Logger
  /** For what is cached about rooms; as `limits.ts` says, where nobody gives another. */
  readonly roomMemoryBytes?: number
}

export interface Context {
  readonly services: Services
  readonly metrics: Metrics
  readonly log: Logger
  /** Whether the database answers. */
  ready(): Promise<boolean>
  /** Others reach this server from now on, so it may call them: they ask back for its keys. */
  listening?(): void
  /** Ends long polls, with 200: the server is stopping. */
  drain(): void
  close(): Promise<void>
}

export type Base = Awaited<ReturnType<typeof openBase>>

/** What a homeserver and an identity service alone both stand on: the database, calls to others and their keys, messages to people. */
export async function openBase(options: ContextOptions) {
  const { clock = Date, config, connection, identityKeys, log, metrics, signingKey, version } = options
  const random: Random = { bytes: randomBytes }
  await requirePolicyTexts(config)
  const { policy = compileServerPolicy(config.federation, config.server_name) } = options
  const outbound = await openOutbound({ config, signingKey, policy, version, now: clock.now, log })
  const messenger = await openMessenger({ config, clock, metrics: metrics.identity, log, client: outbound.client })
  const pages = await loadPages(config)
  const db = openDatabase({ connection, poolSize: config.database.pool_size })
  const fetcher = createKeyFetcher(outbound.federation)
  const serverKeys = createKeyRing({ config, db, clock, signingKey, fetcher, log })
  return {
    ...{ config, clock, random, log, metrics, signingKey, identityKeys, version, policy },
    ...{ outbound, messenger, pages, db, fetcher, serverKeys },
    ready: () =>
      db.query('SELECT 1').then(
        () => true,
        () => false,
      ),
  }
}
