import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { isIdentityServed } from './domain/identity/is-served.ts'
import { MAX_FEDERATION_BODY_BYTES, MAX_KEYS_BODY_BYTES } from './domain/limits.ts'
import type { Services } from './domain/services.ts'
import type { Tracing } from './domain/tracing.ts'
import { createBodyIntake } from './http/body-intake.ts'
import { addressReader } from './http/client-address.ts'
import { createCompression } from './http/compression.ts'
import { type BatchDesk, createBatchDesk } from './http/nodes/batch-desk.ts'
import { createServer, type RequestMetrics, requestIds } from './http/server.ts'
import { accountPlugin } from './routes/account/plugin.ts'
import { adminPlugin } from './routes/admin/plugin.ts'
import { appPlugin } from './routes/app/plugin.ts'
import { clientPlugin } from './routes/client/plugin.ts'
import { consoleDataPlugin, consolePagePlugin } from './routes/console/plugin.ts'
import { federationPlugin } from './routes/federation/plugin.ts'
import { identityPlugin } from './routes/identity/plugin.ts'
import { keyPlugin } from './routes/key/plugin.ts'
import { livekitPlugin } from './routes/livekit/plugin.ts'
import { mediaPlugin } from './routes/media/plugin.ts'
import { oauthPlugin } from './routes/oauth/plugin.ts'
import { ssoPlugin } from './routes/sso/plugin.ts'
import { errorPageOf } from './routes/web/error-page.ts'
import { webPlugin } from './routes/web/plugin.ts'
import { wellKnownPlugin } from './routes/well-known/plugin.ts'

/** The parts of the context that the HTTP server needs. */
export interface AppContext {
  readonly services: Services
  readonly metrics: RequestMetrics
  readonly tracing?: Tracing | undefined
  readonly log: Logger
}

const CLIENT = [
  wellKnownPlugin,
  clientPlugin,
  mediaPlugin,
  ssoPlugin,
  oauthPlugin,
  accountPlugin,
  consolePagePlugin,
  consoleDataPlugin,
  webPlugin,
  appPlugin,
  adminPlugin,
  livekitPlugin,
]

/** Everything that answers requests. */
export interface App {
  readonly app: FastifyInstance
  /** In a cluster: answers those that other nodes pass on in batches. */
  readonly batches?: BatchDesk | undefined
}

/** Builds the HTTP server with a plugin for each configured role; it does not listen yet. */
export function buildApp(context: AppContext): App {
  const { services, metrics, tracing, log } = context
  const { roles, federation, trusted_proxies, limits } = services.config
  const addressOf = addressReader(trusted_proxies)
  const longest = Math.max(MAX_FEDERATION_BODY_BYTES, MAX_KEYS_BODY_BYTES, limits.max_body_bytes)
  const intake = createBodyIntake({ addressOf, longest, metrics: metrics.arrivals, log })
  const nextId = requestIds()
  const app = createServer({ log, metrics, tracing, intake, nextId, errorPage: errorPageOf(services) })
  const hasNodes = services.config.cluster.secret !== undefined
  const batches = hasNodes ? createBatchDesk({ log, metrics, tracing, nextId }) : undefined
  const compression = createCompression(addressOf)
  const deps = { services, log, addressOf, intake, compression, hasNodes, batched: batches?.add }
  const isClient = roles.includes('client')
  const plugins = [
    ...(isClient ? CLIENT : []),
    ...(isClient && federation.enabled ? [keyPlugin, federationPlugin] : []),
    ...(isIdentityServed(services.config) ? [identityPlugin] : []),
  ]
  for (const plugin of plugins) app.register(plugin, deps)
  return { app, batches }
}
