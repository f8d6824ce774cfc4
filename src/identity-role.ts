import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Base } from './base.ts'
import type { Config } from './config/schema.ts'
import { createIdentityServices, type IdentityServices } from './domain/identity/identity-services.ts'
import { isIdentityServed } from './domain/identity/is-served.ts'
import type { IdentityRequester } from './domain/identity/requester.ts'
import type { Services } from './domain/services.ts'
import { withoutV1 } from './http/generations.ts'
import { type MountDeps, mount } from './http/mount.ts'
import { IDENTITY_CODES, type Role } from './http/role.ts'
import { createHomeserverCalls, createOpenIdVerifier } from './outbound/federation.ts'
import { identityEndpoints, identityPages, identityWelcome } from './routes/identity/index.ts'
import { startInviteDeliverer } from './workers/invite-deliverer.ts'
import { startPepperRotator } from './workers/pepper-rotator.ts'

/** The services of the identity role. */
export function createIdentity(
  base: Base,
  homeserver: Pick<Parameters<typeof createIdentityServices>[0], 'openIdTokens' | 'ownHomeserver'>,
): IdentityServices {
  const { federation } = base.outbound
  return createIdentityServices({
    ...base,
    ...homeserver,
    metrics: base.metrics.identity,
    keyRing: base.identityKeys,
    openIdVerifier: createOpenIdVerifier(federation),
    homeservers: createHomeserverCalls(federation),
  })
}

/** Mounts the endpoints of the identity role, and its pages. */
export function mountIdentity(app: FastifyInstance, deps: MountDeps): void {
  const { services } = deps
  const endpoints = services.config.identity.v1_api.enabled ? identityEndpoints : withoutV1(identityEndpoints)
  const welcome = services.config.roles.includes('client') ? [] : identityWelcome
  mount(app, [...endpoints, ...identityPages, ...welcome], identityRole(services), deps)
}

function identityRole({ config, identity }: Services): Role<IdentityRequester> {
  return {
    codes: IDENTITY_CODES,
    maxBodyBytes: config.limits.max_body_bytes,
    headers: { 'cache-control': 'no-store' },
    authenticate: (token) => identity.accounts.find(token),
    admit: ({ userId }, { options }) => (options.beforeTerms ? undefined : identity.terms.require(userId)),
  }
}

/** Starts what the identity role does by itself. Gives what ends it. */
export function startIdentityWorkers(config: Config, identity: IdentityServices, log: Logger): () => Promise<void> {
  if (!isIdentityServed(config)) return async () => {}
  const rotator = startPepperRotator({ config, rotation: identity.pepperRotation, log })
  const deliverer = startInviteDeliverer(identity.deliveries, log)
  return async () => {
    identity.lookup.close()
    await Promise.all([rotator.close(), deliverer.close()])
  }
}
