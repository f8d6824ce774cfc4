import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { adminRole } from './admin-role.ts'
import { isAccessToken } from './domain/accounts/access-tokens.ts'
import type { Requester } from './domain/accounts/requester.ts'
import type { HostedRequester } from './domain/appservices/requester.ts'
import type { PeerRequester } from './domain/federation/requester.ts'
import type { Held } from './domain/federation/server-queues.ts'
import { isIdentityServed } from './domain/identity/is-served.ts'
import { MAX_FEDERATION_BODY_BYTES, MAX_KEYS_BODY_BYTES } from './domain/limits.ts'
import type { Services } from './domain/services.ts'
import { createBodyIntake } from './http/body-intake.ts'
import { addressReader } from './http/client-address.ts'
import { mount } from './http/mount.ts'
import type { EndpointRequest } from './http/request.ts'
import { CLIENT_CODES, FEDERATION_CODES, HOSTED_CODES, type Role } from './http/role.ts'
import { createServer, type RequestMetrics } from './http/server.ts'
import { mountIdentity } from './identity-role.ts'
import { adminEndpoints } from './routes/admin/index.ts'
import { appEndpoints } from './routes/app/index.ts'
import { clientEndpoints } from './routes/client/index.ts'
import { federationEndpoints } from './routes/federation/index.ts'
import { webEndpoints } from './routes/web/index.ts'
import { wellKnownEndpoints } from './routes/well-known/index.ts'

/** What the context gives to HTTP. */
export interface AppContext {
  readonly services: Services
  readonly metrics: RequestMetrics
  readonly log: Logger
}

/** The HTTP server with the endpoints of every role that is wanted; it does not listen yet. */
export function buildApp(context: AppContext): FastifyInstance {
  const { services, log } = context
  const { roles, federation, trusted_proxies, limits } = services.config
  const addressOf = addressReader(trusted_proxies)
  const longest = Math.max(MAX_FEDERATION_BODY_BYTES, MAX_KEYS_BODY_BYTES, limits.max_body_bytes)
  const intake = createBodyIntake({ addressOf, longest, metrics: context.metrics.arrivals, log })
  const app = createServer({ ...context, intake })
  const deps = { services, log, addressOf, intake }
  if (roles.includes('client')) {
    mount(app, [...wellKnownEndpoints, ...clientEndpoints, ...webEndpoints], clientRole(services), deps)
    mount(app, appEndpoints, appRole(services), deps)
    mount(app, adminEndpoints, adminRole(services), deps)
    if (federation.enabled) mount(app, federationEndpoints, federationRole(services), deps)
  }
  if (isIdentityServed(services.config)) mountIdentity(app, deps)
  return app
}

function clientRole({ config, sessions, appservices }: Services): Role<Requester> {
  return {
    codes: CLIENT_CODES,
    maxBodyBytes: config.limits.max_body_bytes,
    // Our own tokens are told by how they look; any other may be that of an application service.
    authenticate: (token, as) =>
      isAccessToken(token) ? sessions.find(token) : (appservices.callers.find(token, as()) ?? sessions.find(token)),
    appserviceOf(token) {
      const appservice = appservices.registry.byToken(token)
      return appservice && { appservice, isUnlimited: true }
    },
    seen: (requester, ip, userAgent) => sessions.seen(requester, ip, userAgent),
  }
}

function appRole({ appservices }: Services): Role<HostedRequester> {
  return {
    codes: HOSTED_CODES,
    maxBodyBytes: MAX_FEDERATION_BODY_BYTES,
    authenticate(token) {
      const hosted = appservices.hosted.byToken(token)
      return hosted && { hosted, isUnlimited: true }
    },
  }
}

function federationRole({ config, federation, rateLimits }: Services): Role<PeerRequester> {
  return {
    codes: FEDERATION_CODES,
    maxBodyBytes: Math.max(MAX_FEDERATION_BODY_BYTES, config.limits.max_body_bytes),
    authenticate: () => undefined,
    claim: (authorizations, addressKey) =>
      federation.signedRequests.claimOf(authorizations, () => rateLimits.take('federation', addressKey())),
    confirm: (claim, request, addressKey) => ({
      server: federation.signedRequests.confirm(claim, request, addressKey),
    }),
    perform: ({ options }, request, handle) => {
      const { requester } = request
      if (requester === undefined || !('server' in requester) || options.outOfTurn) return handle()
      return federation.queues.run(requester.server, heldBy(request), handle)
    },
  }
}

/** Looked at only where a request has to wait. */
function heldBy(request: EndpointRequest): Held {
  return {
    get bytes() {
      return request.bodyBytes
    },
    get signal() {
      return request.signal
    },
  }
}
