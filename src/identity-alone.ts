import type { App, AppContext } from './app.ts'
import { type AmongNodes, type Context, type ContextOptions, openBase } from './base.ts'
import { createAudit } from './domain/admin/audit.ts'
import { createOperators } from './domain/admin/operators.ts'
import { identityChores } from './domain/identity/identity-services.ts'
import { createInvitationDesk } from './domain/identity/invitation-desk.ts'
import { type LifecyclePart, startAll, stopAll, worker } from './domain/lifecycle.ts'
import { openRateLimitOverrides } from './domain/rate-limit-overrides.ts'
import { createRateLimits } from './domain/rate-limits.ts'
import type { Services } from './domain/services.ts'
import { createBodyIntake } from './http/body-intake.ts'
import { addressReader } from './http/client-address.ts'
import { createCompression } from './http/compression.ts'
import { mountApis } from './http/mount.ts'
import { createServer } from './http/server.ts'
import { createIdentity, identityWorkers } from './identity-role.ts'
import { identityAdminApi } from './routes/admin/api.ts'
import { identityApi } from './routes/identity/api.ts'
import { errorPageOf } from './routes/web/error-page.ts'
import { startJanitor } from './workers/janitor.ts'

/** The identity service without a homeserver: the counterpart of `context.ts` and `app.ts` without rooms. */
export async function createContext(options: ContextOptions, amongNodes?: AmongNodes): Promise<Context> {
  const base = await openBase(options, amongNodes)
  const { config, clock, log, metrics, version, outbound, messenger, pages, db } = base
  const identity = createIdentity(base, { userOf: async () => undefined })
  const admin = {
    operators: createOperators({ db, clock, sessions: { find: () => undefined } }),
    audit: createAudit({ db, clock }),
    invitations: createInvitationDesk({ db, clock }),
    diagnostics: base.diagnostics,
  }
  const rateLimitOverrides = await openRateLimitOverrides({ db, clock })
  const rateLimits = createRateLimits({ config, clock, overrides: rateLimitOverrides })
  const running: readonly LifecyclePart[] = [
    { name: 'database', stop: db.close },
    { name: 'its place among the nodes', stop: base.node.leave },
    { name: 'calls to others', stop: outbound.close },
    { name: 'messenger', stop: () => messenger.close() },
    worker('janitor', () => startJanitor({ db, clock, log, chores: identityChores(config) })),
    ...identityWorkers(base, identity, undefined),
  ]
  await startAll(running)
  metrics.watch({
    waitingSyncs: () => 0,
    waitingTransactions: db.waiting,
    waitingPeerRequests: () => 0,
    database: db.pool,
  })
  return {
    // No endpoint is mounted here that asks for another.
    services: { admin, config, clock, version, pages, rateLimits, rateLimitOverrides, identity } as Services,
    metrics,
    tracing: base.tracing,
    log,
    ready: base.ready,
    drain() {},
    lost: base.node.lost,
    isHeld: base.node.isHeld,
    close: () => stopAll(running, log),
  }
}

export function buildApp(context: AppContext): App {
  const { services, log, metrics, tracing } = context
  const { trusted_proxies, limits } = services.config
  const addressOf = addressReader(trusted_proxies)
  const intake = createBodyIntake({ addressOf, longest: limits.max_body_bytes, metrics: metrics.arrivals, log })
  const app = createServer({ log, metrics, tracing, intake, errorPage: errorPageOf(services) })
  const deps = { services, log, addressOf, intake, compression: createCompression(addressOf) }
  mountApis(app, [identityApi, identityAdminApi], deps)
  return { app }
}
