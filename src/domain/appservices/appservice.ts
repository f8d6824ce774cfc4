import { hash, timingSafeEqual } from 'node:crypto'
import type { Registration } from '../../core/appservice/registration.ts'
import type { ServerName, UserId } from '../../core/ids.ts'
import { userId } from '../../core/ids.ts'

/** A registered application service. */
export interface Appservice {
  readonly id: string
  readonly registration: Registration
  /** The service's own user. */
  readonly sender: UserId
  /** SHA-256 of its `as_token`. */
  readonly tokenDigest: Buffer
}

export function appserviceOf(registration: Registration, server: ServerName): Appservice {
  return {
    id: registration.id,
    registration,
    sender: userId(registration.sender_localpart, server),
    tokenDigest: digestOf(registration.as_token),
  }
}

function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** The service with this `as_token`. It is compared with all of them in constant time. */
export function findByToken(services: readonly Appservice[], token: string): Appservice | undefined {
  if (services.length === 0) return undefined
  const digest = digestOf(token)
  let found: Appservice | undefined
  for (const service of services) if (timingSafeEqual(service.tokenDigest, digest)) found = service
  return found
}
