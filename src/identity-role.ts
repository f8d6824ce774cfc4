import { createOpenIdTokens } from './domain/accounts/openid-tokens.ts'
import type { Base } from './domain/base.ts'
import { createContactServices } from './domain/contact/contact-services.ts'
import { createIdentityServers, type IdentityServers } from './domain/contact/identity-servers.ts'
import { createInviteDeliveries, type OwnHomeserver } from './domain/identity/deliveries.ts'
import {
  createIdentityServices,
  type IdentityParts,
  type IdentityServices,
} from './domain/identity/identity-services.ts'
import { isIdentityServed } from './domain/identity/is-served.ts'
import { type LifecyclePart, worker } from './domain/lifecycle.ts'
import { createHomeserverCalls, createOpenIdVerifier } from './outbound/federation.ts'
import { createIdentityClient } from './outbound/identity.ts'
import { startInviteDeliverer } from './workers/invite-deliverer.ts'
import { startPepperRotator } from './workers/pepper-rotator.ts'

/** The services of the identity role. @param openIdTokens the homeserver's own, where it is in this process */
export function createIdentity(base: Base, openIdTokens: IdentityParts['openIdTokens']): IdentityServices {
  const { config, db, clock, random, identityKeys, messenger, serverKeys, metrics, log, outbound } = base
  return createIdentityServices({
    config,
    db,
    clock,
    random,
    openIdTokens,
    openIdVerifier: createOpenIdVerifier(outbound.federation),
    keyRing: identityKeys,
    messenger,
    serverKeys,
    metrics: metrics.identity,
    log,
  })
}

/** Addresses of people: our identity service and those of others, and the addresses of our accounts. */
export interface AddressServices {
  readonly identity: IdentityServices
  readonly identityServers: IdentityServers
  readonly contact: ReturnType<typeof createContactServices>
}

export function createAddressServices(base: Base): AddressServices {
  const { config, db, clock, random, messenger, signingKey, log, outbound } = base
  const identity = createIdentity(base, createOpenIdTokens({ db, clock, random }))
  const client = createIdentityClient(outbound.client, config.outbound.dialect)
  const identityServers = createIdentityServers({ config, identity, client, signingKey, log })
  const contact = createContactServices({ config, db, clock, random, messenger, identityServers, log })
  return { identity, identityServers, contact }
}

/**
 * What the identity role does by itself, in the order in which it begins.
 *
 * @param ownHomeserver the one in this process, if there is one
 */
export function identityWorkers(
  base: Base,
  { dueDeliveries: due, keys, lookup, pepperRotation: rotation }: IdentityServices,
  ownHomeserver: OwnHomeserver | undefined,
): readonly LifecyclePart[] {
  const { config, db, clock, log, outbound } = base
  if (!isIdentityServed(config)) return []
  const homeservers = createHomeserverCalls(outbound.federation)
  const metrics = base.metrics.identity
  const deliveries = createInviteDeliveries({ config, db, clock, keys, homeservers, ownHomeserver, due, metrics, log })
  return [
    worker('invitation deliverer', () => startInviteDeliverer(deliveries, log)),
    worker('pepper rotator', () => startPepperRotator({ config, rotation, log })),
    { name: 'identity lookups', stop: lookup.close },
  ]
}
