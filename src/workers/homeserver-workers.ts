import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { Deactivation } from '../domain/accounts/deactivation.ts'
import { adminChores } from '../domain/admin/admin-services.ts'
import { type AppserviceServices, appserviceChores } from '../domain/appservices/appservice-services.ts'
import type { Clock } from '../domain/clock.ts'
import { contactChore } from '../domain/contact/contact-services.ts'
import { federationChores } from '../domain/federation/federation-services.ts'
import { identityChores } from '../domain/identity/identity-services.ts'
import { type LifecyclePart, worker } from '../domain/lifecycle.ts'
import type { RoomDeletions } from '../domain/rooms/act/deletion/deletions.ts'
import type { Guests } from '../domain/rooms/act/guests.ts'
import type { Database } from '../store/db/db.ts'
import { startDeactivationRunner } from './deactivation-runner.ts'
import { startGuestExpeller } from './guest-expeller.ts'
import { startJanitor } from './janitor.ts'
import { startRegistrationReloader } from './registration-reloader.ts'
import { startRoomDeleter } from './room-deleter.ts'

/** What a homeserver does by itself, in the order in which it begins. */
export function homeserverWorkers(parts: {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly guests: Guests
  readonly deletions: RoomDeletions
  readonly deactivation: Deactivation
  readonly appservices: AppserviceServices
}): readonly LifecyclePart[] {
  const { config, db, clock, log, guests, deletions, deactivation, appservices } = parts
  const chores = [
    ...identityChores(config),
    contactChore(config),
    ...adminChores,
    ...federationChores,
    ...appserviceChores,
  ]
  return [
    worker('janitor', () => startJanitor({ db, clock, log, chores })),
    worker('guest expeller', () => startGuestExpeller(guests, log)),
    worker('room deleter', () => startRoomDeleter(deletions, log)),
    worker('registration reloader', () => startRegistrationReloader({ config, appservices, log })),
    worker('deactivation runner', () => startDeactivationRunner(deactivation, log)),
  ]
}
