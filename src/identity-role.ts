import type { Logger } from 'pino'
import type { Base } from './base.ts'
import type { Config } from './config/schema.ts'
import { createIdentityServices, type IdentityServices } from './domain/identity/identity-services.ts'
import { isIdentityServed } from './domain/identity/is-served.ts'
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
