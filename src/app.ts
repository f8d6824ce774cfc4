import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { isIdentityServed } from './domain/identity/is-served.ts'
import { MAX_FEDERATION_BODY_BYTES, MAX_KEYS_BODY_BYTES } from './domain/limits.ts'
import type { Services } from './domain/services.ts'
import type { Tracing } from './domain/tracing.ts'
import { createBodyIntake } from './http/body-intake.ts'
import { addressReader } from './http/client-address.ts'
import { createCompression } from './http/compression.ts'
import { mountApis } from './http/mount.ts'
import { type BatchDesk, createBatchDesk } from './http/nodes/batch-desk.ts'
import { createServer, type RequestMetrics, requestIds } from './http/server.ts'
import { accountApi } from './routes/account/api.ts'
import { adminApi } from './routes/admin/api.ts'
import { appApi } from './routes/app/api.ts'
import { clientApi } from './routes/client/api.ts'
import { consoleDataApi, consolePageApi } from './routes/console/api.ts'
import { federationApi } from './routes/federation/api.ts'
import { identityApi } from './routes/identity/api.ts'
import { keyApi } from './routes/key/api.ts'
import { livekitApi } from './routes/livekit/api.ts'
import { mediaApi } from './routes/media/api.ts'
import { oauthApi } from './routes/oauth/api.ts'
import { ssoApi } from './routes/sso/api.ts'
import { webApi } from './routes/web/api.ts'
import { errorPageOf } from './routes/web/error-page.ts'
import { wellKnownApi } from './routes/well-known/api.ts'

/** The parts of the context that the HTTP server needs. */
export interface AppContext {
  readonly services: Services
  readonly metrics: RequestMetrics
  readonly tracing?: Tracing | undefined
  readonly log: Logger
}

const CLIENT = [
  wellKnownApi,
  clientApi,
  mediaApi,
  ssoApi,
  oauthApi,
  accountApi,
  consolePageApi,
  consoleDataApi,
  webApi,
  appApi,
  adminApi,
  livekitApi,
]

/** Everything that answers requests. */
export interface App {
  readonly app: FastifyInstance
  /** In a cluster: answers those that other nodes pass on in batches. */
  readonly batches?: BatchDesk | undefined
}

/** Builds the HTTP server with the APIs of each configured role; it does not listen yet. */
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
  const apis = [
    ...(isClient ? CLIENT : []),
    ...(isClient && federation.enabled ? [keyApi, federationApi] : []),
    ...(isIdentityServed(services.config) ? [identityApi] : []),
  ]
  mountApis(app, apis, deps)
  return { app, batches }
}
