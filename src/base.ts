import { randomBytes } from 'node:crypto'
import type { ClientConfig } from 'pg'
import type { Logger } from 'pino'
import type { Config } from './config/schema.ts'
import { sharedValues } from './config/shared-options.ts'
import { compileServerPolicy, type ServerPolicy } from './core/server-policy.ts'
import { createSessions } from './domain/accounts/sessions.ts'
import { type Diagnostics, NO_DIAGNOSTICS } from './domain/admin/diagnostics.ts'
import type { Base, HomeserverBase } from './domain/base.ts'
import type { Clock, Random } from './domain/clock.ts'
import { joinNodes, type StandBy } from './domain/cluster/join.ts'
import type { NodeLease } from './domain/cluster/node-lease.ts'
import { ownFacts } from './domain/cluster/own-facts.ts'
import { createKeyRing } from './domain/federation/key-ring.ts'
import { createOwnKeys } from './domain/federation/own-keys.ts'
import type { OwnSigningKey } from './domain/federation/own-signing-key.ts'
import type { IdentityKeyRing } from './domain/identity/keys.ts'
import { openMessenger } from './domain/identity/messenger.ts'
import { requirePolicyTexts } from './domain/identity/policies.ts'
import type { Metrics } from './domain/metrics.ts'
import { loadPages } from './domain/pages.ts'
import { openRateLimitOverrides } from './domain/rate-limit-overrides.ts'
import { createRateLimits } from './domain/rate-limits.ts'
import { openRestores } from './domain/restores.ts'
import type { Services } from './domain/services.ts'
import type { SyncDesk } from './domain/standby/sync-desk.ts'
import { planTimelines } from './domain/sync/first/warm.ts'
import type { Tracing } from './domain/tracing.ts'
import { createUsers } from './domain/users.ts'
import { openOutbound } from './outbound/outbound.ts'
import { createKeyFetcher } from './outbound/server-keys.ts'
import { sessionName } from './store/cluster/nodes.ts'
import { openDatabase } from './store/db/db.ts'
import { openLedger } from './store/db/ledger.ts'
import { traceDatabase } from './store/db/traced-database.ts'

export interface ContextOptions {
  readonly config: Config
  readonly connection: ClientConfig
  readonly signingKey: OwnSigningKey
  readonly identityKeys: IdentityKeyRing
  /** The policy about other servers; by default that of the configuration. */
  readonly policy?: ServerPolicy
  readonly version: string
  /** What this process is called among nodes; by default a random name. */
  readonly holder?: string | undefined
  /** By default the machine's clock. */
  readonly clock?: Clock
  readonly metrics: Metrics
  /** For operators; nothing by default. */
  readonly diagnostics?: Diagnostics | undefined
  /** Where spans go; nowhere by default. */
  readonly tracing?: Tracing | undefined
  readonly log: Logger
  /** The memory budget for cached rooms; by default that of `limits.ts`. */
  readonly roomMemoryBytes?: number
  /** Whether the database plans the statements of first syncs at the start; by default it does. */
  readonly plansAhead?: boolean
}

/** What a process is to other nodes, if it listens for them. */
export interface AmongNodes {
  /** Where it listens for them. */
  readonly address: string
  /** How it stands by for one that serves. Without it, it waits for one lease at most. */
  readonly standBy?: StandBy | undefined
}

export interface Context {
  readonly services: Services
  /** What looks at the syncs that other nodes hold. */
  readonly syncDesk?: SyncDesk | undefined
  readonly metrics: Metrics
  readonly tracing: Tracing | undefined
  readonly log: Logger
  /** Whether the database answers, and this process has its place for sure. */
  ready(): Promise<boolean>
  /** Called when this server listens. Only then may it call other servers, because they fetch its keys. */
  listening?(): void
  /** Ends long polls with 200, because the server is stopping. */
  drain(): void
  /** Resolves if another node took the place of this one: this process must end, and write nothing more. */
  readonly lost: Promise<void>
  /** Whether this process still has its place, and so what it has in memory is true. */
  isHeld(): boolean
  close(): Promise<void>
}

/**
 * Opens what the rest is made of, and takes the place of the node that writes: from then on, no other process changes what is read.
 *
 * @throws as `joinNodes`
 */
export async function openBase(options: ContextOptions, amongNodes?: AmongNodes): Promise<Base> {
  const { clock = Date, config, connection, identityKeys, log, metrics, signingKey, version } = options
  const random: Random = { bytes: randomBytes }
  await requirePolicyTexts(config)
  const { policy = compileServerPolicy(config.federation, config.server_name) } = options
  const outbound = await openOutbound({ config, signingKey, policy, version, now: clock.now, log })
  const messenger = await openMessenger({ config, clock, metrics: metrics.identity, log, client: outbound.client })
  const pages = await loadPages(config)
  const { holder, tracing } = options
  const own = await ownFacts({
    config,
    sharedValues,
    address: amongNodes?.address,
    signingKey,
    identityKeys,
    version,
    random,
    holder,
  })
  let node: NodeLease | undefined
  const opened = openDatabase({
    connection,
    poolSize: config.database.pool_size,
    observer: metrics.database,
    replicas: {
      urls: config.database.replicas,
      heard(replica, whyNot) {
        if (whyNot === undefined) log.info({ replica }, 'a replica answers reads')
        else log.warn({ replica, reason: whyNot }, 'a replica is left out, and the primary answers in its place')
      },
    },
    // Alone, nobody has to tell these connections from those of another node.
    ...(own.cluster !== undefined && {
      name: sessionName(own.holder),
      mayWrite: () => node === undefined || node.isHeld(),
    }),
  })
  const db = tracing === undefined ? opened : traceDatabase(opened, tracing.run)
  const joined = await joinNodes({ db, own, clock, log, standBy: amongNodes?.standBy }).catch(
    async (error: unknown) => {
      await db.close()
      throw error
    },
  )
  node = joined
  const fetcher = createKeyFetcher(outbound.federation)
  const serverKeys = createKeyRing({ config, db, clock, signingKey, fetcher, log })
  const ready = async () =>
    joined.isHeld() &&
    (await db.query('SELECT 1').then(
      () => true,
      () => false,
    ))
  return {
    config,
    clock,
    random,
    log,
    metrics,
    tracing,
    diagnostics: options.diagnostics ?? NO_DIAGNOSTICS,
    signingKey,
    identityKeys,
    version,
    policy,
    outbound,
    messenger,
    pages,
    db,
    node,
    fetcher,
    serverKeys,
    ready,
  }
}

/** Opens what a homeserver is made of. */
export async function openHomeserverBase(options: ContextOptions, amongNodes?: AmongNodes): Promise<HomeserverBase> {
  const base = await openBase(options, amongNodes)
  const { config, db, clock, signingKey } = base
  if (options.plansAhead ?? true) planTimelines(db)
  const restores = await openRestores(db)
  const rateLimitOverrides = await openRateLimitOverrides({ db, clock })
  return {
    config,
    db,
    node: base.node,
    clock,
    random: base.random,
    log: base.log,
    metrics: base.metrics,
    tracing: base.tracing,
    diagnostics: base.diagnostics,
    version: base.version,
    policy: base.policy,
    signingKey,
    identityKeys: base.identityKeys,
    serverKeys: base.serverKeys,
    fetcher: base.fetcher,
    outbound: base.outbound,
    messenger: base.messenger,
    pages: base.pages,
    ready: base.ready,
    ledger: await openLedger(db),
    restores,
    users: createUsers({ db }),
    sessions: createSessions({ db, clock, restores }),
    rateLimits: createRateLimits({ config, clock, overrides: rateLimitOverrides }),
    rateLimitOverrides,
    ownKeys: createOwnKeys({ config, clock, signingKey }),
  }
}
