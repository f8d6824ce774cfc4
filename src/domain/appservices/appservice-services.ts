import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { AppserviceClient } from '../../outbound/appservice.ts'
import { forgetTaken } from '../../store/appservices/hosted-transactions.ts'
import type { Tx } from '../../store/db/db.ts'
import type { Devices } from '../accounts/devices.ts'
import type { Profiles } from '../accounts/profiles.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Base, HomeserverBase } from '../base.ts'
import type { Random } from '../clock.ts'
import type { Rooms } from '../rooms/act/rooms.ts'
import type { RoomAppservices } from '../rooms/room/appservices-of-room.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { RoomBase } from '../rooms/room-base-services.ts'
import type { SyncBase } from '../sync/sync-base.ts'
import type { Appservice } from './appservice.ts'
import { type AppserviceAccounts, createAppserviceAccounts } from './appservice-accounts.ts'
import { type AppserviceCallers, createAppserviceCallers } from './callers.ts'
import { createDelivery } from './delivery.ts'
import { createEventsOut, type EventsOut } from './events-out.ts'
import { createExclusiveNames, type ExclusiveNames } from './exclusive-names.ts'
import { createHostedHost } from './hosted-host.ts'
import { loadRegistrations } from './load-registrations.ts'
import { createNetworkRooms, type NetworkRooms } from './network-rooms.ts'
import { type AppserviceNews, createAppserviceNews, newsChore } from './news.ts'
import { noticesRegistration } from './notices-registration.ts'
import { pingAppservice } from './ping.ts'
import { type AppserviceQueries, createAppserviceQueries } from './queries.ts'
import { type AppserviceRegistry, createAppserviceRegistry } from './registry.ts'
import { createRunningAppservices, type HostedAppservices, type RunningAppservices } from './running-appservices.ts'
import { startHosted } from './start-hosted.ts'
import { createThirdParty, type ThirdParty } from './third-party.ts'

/** The part of the application services that exists before accounts: it says whether a name is free. */
export interface AppserviceNames {
  readonly registry: AppserviceRegistry
  readonly exclusive: ExclusiveNames
}

/** @throws RegistrationError for an error in a registration file */
export async function openAppserviceNames(config: Config, random: Random, log: Logger): Promise<AppserviceNames> {
  const builtIn = noticesRegistration(config, random)
  const registry = createAppserviceRegistry({ serverName: config.server_name, log, builtIn })
  registry.replace(await loadRegistrations(config))
  return { registry, exclusive: createExclusiveNames(registry) }
}

/** The part of the application services that exists before rooms and accounts. */
export interface AppserviceBase extends AppserviceNames {
  readonly news: AppserviceNews
  readonly queries: AppserviceQueries
  readonly hosted: RunningAppservices
  readonly client: AppserviceClient
}

export async function openAppserviceBase(parts: {
  readonly base: Pick<HomeserverBase, 'config' | 'db' | 'ledger' | 'clock' | 'random' | 'log'> & {
    readonly outbound: { readonly appservices: AppserviceClient }
  }
}): Promise<AppserviceBase> {
  const { config, db, ledger, clock, random, log, outbound } = parts.base
  const client = outbound.appservices
  const serverName = config.server_name
  const { registry, exclusive } = await openAppserviceNames(config, random, log)
  const hosted = createRunningAppservices(registry)
  return {
    registry,
    exclusive,
    news: createAppserviceNews({ db, ledger, serverName, registry, clock, log }),
    queries: createAppserviceQueries({ serverName, registry, hosted, client, log }),
    hosted,
    client,
  }
}

/** Sends events to application services. */
export interface AppserviceEvents {
  readonly eventsOut: EventsOut
  /** What rooms use of it. */
  readonly roomAppservices: RoomAppservices
}

export function createAppserviceEvents(parts: {
  readonly base: Pick<Base, 'config' | 'db' | 'clock' | 'random' | 'log'>
  readonly appserviceBase: AppserviceBase
  readonly roomBase: Pick<RoomBase, 'registry' | 'events'>
  readonly syncBase: Pick<SyncBase, 'keyCounts' | 'presence'>
}): AppserviceEvents {
  const { config, db, clock, random, log } = parts.base
  const { registry, exclusive, news, queries, hosted, client } = parts.appserviceBase
  const { events, registry: rooms } = parts.roomBase
  const { keyCounts, presence } = parts.syncBase
  const eventsOut = createEventsOut({
    db,
    serverName: config.server_name,
    registry,
    clock,
    random,
    news,
    events,
    rooms,
    keyCounts,
    presenceOf: presence.of,
    deliver: createDelivery(client, hosted),
    log,
  })
  const roomAppservices: RoomAppservices = {
    requireAlias: exclusive.requireAlias,
    isUserOf: ({ id }, userId) => registry.claimsOn('users', userId).some(({ service }) => service.id === id),
    findAlias: queries.findAlias,
    aliasesChanged: eventsOut.aliasesChanged,
    committed: eventsOut.committed,
    missed: eventsOut.missed,
    typing: eventsOut.typing,
    read: eventsOut.read,
  }
  return { eventsOut, roomAppservices }
}

/** The application services, as endpoints call them. */
export interface AppserviceServices {
  readonly registry: AppserviceRegistry
  readonly callers: AppserviceCallers
  readonly accounts: AppserviceAccounts
  readonly thirdParty: ThirdParty
  readonly networkRooms: NetworkRooms
  readonly hosted: HostedAppservices
  ping(by: Requester, id: string, transactionId: string | undefined): Promise<number>
}

export async function createAppserviceServices(deps: {
  readonly appserviceBase: AppserviceBase
  readonly eventsOut: Pick<EventsOut, 'heard'>
  readonly roomBase: { readonly registry: Pick<RoomRegistry, 'get'> }
  readonly base: Pick<Base, 'config' | 'db' | 'clock' | 'random' | 'log'>
  readonly accounts: { readonly sessions: Sessions; readonly devices: Pick<Devices, 'announce'> }
}): Promise<AppserviceServices> {
  const { heard } = deps.eventsOut
  const { registry: rooms } = deps.roomBase
  const { config, db, clock, random, log } = deps.base
  const { sessions, devices } = deps.accounts
  const { registry, hosted, client } = deps.appserviceBase
  const serverName = config.server_name
  const accounts = createAppserviceAccounts({ config, db, clock, random, sessions, devices, registry })
  await accounts.makeSenders()
  return {
    registry,
    accounts,
    hosted,
    callers: createAppserviceCallers({ db, serverName, registry, sessions, heard }),
    thirdParty: createThirdParty({ registry, hosted, client, clock, log }),
    networkRooms: createNetworkRooms({ db, rooms }),
    ping: (by, id, transactionId) => pingAppservice(client, by, id, transactionId),
  }
}

/** Longer than any server repeats a transaction that was accepted. */
const TRANSACTIONS_KEPT_MS = 30 * 24 * 3_600_000

/** What the janitor removes. */
export const appserviceChores = [
  (tx: Tx, now: number, atMost: number) => forgetTaken(tx, now - TRANSACTIONS_KEPT_MS, atMost),
  newsChore,
] as const

/** Starts hosted services, and begins to send. The caller closes `eventsOut`, after the client. */
export async function startAppservices(deps: {
  readonly base: Pick<Base, 'config' | 'db' | 'clock' | 'log'>
  readonly appserviceBase: Pick<AppserviceBase, 'registry' | 'hosted'>
  readonly eventsOut: Pick<EventsOut, 'start'>
  readonly appservices: AppserviceServices
  readonly rooms: { readonly acting: { readonly rooms: Rooms }; position(): number }
  readonly accounts: { readonly profiles: Profiles }
}): Promise<void> {
  const { config, db, clock, log } = deps.base
  const { rooms } = deps.rooms.acting
  const { profiles } = deps.accounts
  const { accounts, callers } = deps.appservices
  const { registry, hosted: running } = deps.appserviceBase
  // Events of hosted services from here on are new to the other services.
  const position = deps.rooms.position()
  const hostOf = (service: Appservice) => createHostedHost({ config, rooms, profiles, accounts, callers }, service)
  await startHosted({ registry, running, db, clock, log, hostOf })
  await deps.eventsOut.start(position)
}
