import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { AppContext } from './app.ts'
import type { Context, ContextOptions } from './context.ts'
import { compileServerPolicy } from './core/server-policy.ts'
import type { Clock, Random } from './domain/clock.ts'
import { createKeyRing } from './domain/federation/key-ring.ts'
import { createIdentityServices, identityChores } from './domain/identity/identity-services.ts'
import { openMessenger } from './domain/identity/messenger.ts'
import { requirePolicyTexts } from './domain/identity/policies.ts'
import { openRateLimitOverrides } from './domain/rate-limit-overrides.ts'
import { createRateLimits } from './domain/rate-limits.ts'
import type { Services } from './domain/services.ts'
import { addressReader } from './http/client-address.ts'
import { createServer } from './http/server.ts'
import { mountIdentity, startIdentityWorkers } from './identity-role.ts'
import { createHomeserverCalls, createOpenIdVerifier } from './outbound/federation.ts'
import { openOutbound } from './outbound/outbound.ts'
import { createKeyFetcher } from './outbound/server-keys.ts'
import { openDatabase } from './store/db.ts'
import { claimWriter, WRITER } from './store/writer-lock.ts'
import { startJanitor } from './workers/janitor.ts'

/** The identity service without a homeserver: what `context.ts` and `app.ts` make, without rooms and all that is around them. */
export async function createContext(options: ContextOptions): Promise<Context> {
  const { config, log, metrics, signingKey, version } = options
  const clock: Clock = Date
  const random: Random = { bytes: randomBytes }
  await requirePolicyTexts(config)
  const { policy = compileServerPolicy(config.federation, config.server_name) } = options
  const outbound = await openOutbound({ config, signingKey, policy, version, now: clock.now, log })
  const messenger = await openMessenger({ config, clock, metrics: metrics.identity, log, client: outbound.client })
  const db = openDatabase({ connection: options.connection, poolSize: config.database.pool_size })
  const claim = db.dedicated((client) => claimWriter(client, WRITER))
  await claim.query('SELECT 1')
  const fetcher = createKeyFetcher(outbound.federation)
  const identity = createIdentityServices({
    ...{ config, db, clock, random, messenger, metrics: metrics.identity, log },
    openIdTokens: { userOf: async () => undefined },
    openIdVerifier: createOpenIdVerifier(outbound.federation),
    keyRing: options.identityKeys,
    serverKeys: createKeyRing({ config, db, clock, signingKey, fetcher, log }),
    homeservers: createHomeserverCalls(outbound.federation),
    ownHomeserver: undefined,
  })
  const rateLimitOverrides = await openRateLimitOverrides({ db, clock })
  const rateLimits = createRateLimits({ config, clock, overrides: rateLimitOverrides })
  const janitor = startJanitor({ db, clock, log, chores: identityChores(config) })
  const closeIdentityWorkers = startIdentityWorkers(config, identity, log)
  metrics.watch({ waitingSyncs: () => 0, waitingTransactions: db.waiting, waitingPeerRequests: () => 0 })
  return {
    // No endpoint is mounted here that asks for another.
    services: { config, clock, version, rateLimits, rateLimitOverrides, identity } as Services,
    metrics,
    log,
    ready: () =>
      db.query('SELECT 1').then(
        () => true,
        () => false,
      ),
    drain() {},
    async close() {
      await closeIdentityWorkers()
      await janitor.close()
      messenger.close()
      await outbound.close()
      await db.close()
    },
  }
}

export function buildApp(context: AppContext): FastifyInstance {
  const { services, log } = context
  const app = createServer(context)
  mountIdentity(app, { services, log, addressOf: addressReader(services.config.trusted_proxies) })
  return app
}
