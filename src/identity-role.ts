import type { Logger } from 'pino'
import type { Base } from './base.ts'
import type { Config } from './config/schema.ts'
import { createIdentityServices, type IdentityServices } from './domain/identity/identity-services.ts'
import { isIdentityServed } from './domain/identity/is-served.ts'
import { type LifecyclePart, worker } from './domain/lifecycle.ts'
import { createHomeserverCalls, createOpenIdVerifier } from './outbound/federation.ts'
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

/** What the identity role does by itself, in the order in which it begins. */
export function identityWorkers(config: Config, identity: IdentityServices, log: Logger): readonly LifecyclePart[] {
  if (!isIdentityServed(config)) return []
  const { deliveries, lookup, pepperRotation: rotation } = identity
  return [
    worker('invitation deliverer', () => startInviteDeliverer(deliveries, log)),
    worker('pepper rotator', () => startPepperRotator({ config, rotation, log })),
    { name: 'identity lookups', stop: lookup.close },
  ]
}
