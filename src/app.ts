import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Services } from './domain/services.ts'
import { addressReader } from './http/client-address.ts'
import { mount } from './http/mount.ts'
import { CLIENT_CODES, type Role } from './http/role.ts'
import { createServer, type RequestMetrics } from './http/server.ts'
import { clientEndpoints } from './routes/client/index.ts'
import { webEndpoints } from './routes/web/index.ts'
import { wellKnownEndpoints } from './routes/well-known/index.ts'

/** What the context gives to HTTP. */
export interface AppContext {
  readonly services: Services
  readonly metrics: RequestMetrics
  readonly log: Logger
}

/** The HTTP server with the endpoints of every role; it does not listen yet. */
export function buildApp(context: AppContext): FastifyInstance {
  const { services, log } = context
  const { config, sessions } = services
  const app = createServer(context)
  const deps = { services, log, addressOf: addressReader(config.trusted_proxies) }
  const client: Role = {
    codes: CLIENT_CODES,
    maxBodyBytes: config.limits.max_body_bytes,
    authenticate: (token) => sessions.find(token),
    seen: (requester, ip, userAgent) => sessions.seen(requester, ip, userAgent),
  }
  mount(app, [...wellKnownEndpoints, ...clientEndpoints, ...webEndpoints], client, deps)
  return app
}
