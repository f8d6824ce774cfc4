import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { AppserviceClient } from '../../outbound/appservice.ts'
import type { Database } from '../../store/db.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Clock, Random } from '../clock.ts'
import type { EventCache } from '../rooms/event-cache.ts'
import type { RoomAppservices } from '../rooms/room-appservices.ts'
import { type AppserviceAccounts, createAppserviceAccounts } from './appservice-accounts.ts'
import { type AppserviceCallers, createAppserviceCallers } from './callers.ts'
import { createDelivery } from './delivery.ts'
import { createEventsOut, type EventsOut } from './events-out.ts'
import { createExclusiveNames, type ExclusiveNames } from './exclusive-names.ts'
import { loadRegistrations } from './load-registrations.ts'
import { type AppserviceRegistry, createAppserviceRegistry } from './registry.ts'

/** What is known of application services before accounts are: others ask whether a name is free. */
export interface AppserviceNames {
  readonly registry: AppserviceRegistry
  readonly exclusive: ExclusiveNames
}

/** @throws RegistrationError for what is wrong in a registration file */
export async function openAppserviceNames(config: Config, log: Logger): Promise<AppserviceNames> {
  const registry = createAppserviceRegistry({ serverName: config.server_name, log })
  registry.replace(await loadRegistrations(config))
  return { registry, exclusive: createExclusiveNames(registry) }
}

/** What rooms need of application services, before accounts are. */
export interface AppserviceQueues extends AppserviceNames {
  readonly eventsOut: EventsOut
  readonly ofRooms: RoomAppservices
}

export async function openAppserviceQueues(deps: {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}): Promise<AppserviceQueues> {
  const { config, log } = deps
  const names = await openAppserviceNames(config, log)
  const eventsOut = createEventsOut({ ...deps, serverName: config.server_name, registry: names.registry })
  const ofRooms: RoomAppservices = {
    requireAlias: names.exclusive.requireAlias,
    aliasesChanged: eventsOut.aliasesChanged,
    committed: eventsOut.committed,
    missed: eventsOut.missed,
  }
  return { ...names, eventsOut, ofRooms }
}

/** Application services, as endpoints know them. */
export interface AppserviceServices {
  readonly registry: AppserviceRegistry
  readonly callers: AppserviceCallers
  readonly accounts: AppserviceAccounts
}

export async function createAppserviceServices(deps: {
  readonly names: AppserviceNames & Partial<Pick<AppserviceQueues, 'eventsOut'>>
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly sessions: Sessions
}): Promise<AppserviceServices> {
  const { registry, eventsOut } = deps.names
  const serverName = deps.config.server_name
  const accounts = createAppserviceAccounts({ ...deps, registry })
  await accounts.makeSenders()
  const heard = (id: string) => eventsOut?.heard(id)
  return { registry, accounts, callers: createAppserviceCallers({ ...deps, serverName, registry, heard }) }
}

/** Begins to send. Whoever calls this closes `eventsOut`, after the client. */
export function startSending(
  { eventsOut }: AppserviceQueues,
  deps: { readonly client: AppserviceClient; readonly events: EventCache; readonly position: number },
): Promise<void> {
  return eventsOut.start(deps.events, deps.position, createDelivery(deps.client))
}
