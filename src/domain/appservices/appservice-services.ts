import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { AppserviceClient } from '../../outbound/appservice.ts'
import { forgetTaken } from '../../store/appservices/hosted-transactions.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import type { Devices } from '../accounts/devices.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { Clock, Random } from '../clock.ts'
import type { RoomAppservices } from '../rooms/room/appservices-of-room.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import { type AppserviceAccounts, createAppserviceAccounts } from './appservice-accounts.ts'
import { type AppserviceCallers, createAppserviceCallers } from './callers.ts'
import { createDelivery } from './delivery.ts'
import { createEventsOut, type EventsOut, type StartParts } from './events-out.ts'
import { createExclusiveNames, type ExclusiveNames } from './exclusive-names.ts'
import { createHostedAppservices, type HostedAppservices } from './hosted.ts'
import { createHostedHost } from './hosted-host.ts'
import { loadRegistrations } from './load-registrations.ts'
import { createNetworkRooms, type NetworkRooms } from './network-rooms.ts'
import { type AppserviceNews, createAppserviceNews, newsChore } from './news.ts'
import { noticesRegistration } from './notices-registration.ts'
import { pingAppservice } from './ping.ts'
import { type AppserviceQueries, createAppserviceQueries } from './queries.ts'
import { type AppserviceRegistry, createAppserviceRegistry } from './registry.ts'
import { createThirdParty, type ThirdParty } from './third-party.ts'

/** What is known of application services before accounts are: others ask whether a name is free. */
export interface AppserviceNames {
  readonly registry: AppserviceRegistry
  readonly exclusive: ExclusiveNames
}

/** @throws RegistrationError for what is wrong in a registration file */
export async function openAppserviceNames(config: Config, random: Random, log: Logger): Promise<AppserviceNames> {
  const builtIn = noticesRegistration(config, random)
  const registry = createAppserviceRegistry({ serverName: config.server_name, log, builtIn })
  registry.replace(await loadRegistrations(config))
  return { registry, exclusive: createExclusiveNames(registry) }
}

/** What rooms need of application services, before accounts are. */
export interface AppserviceQueues extends AppserviceNames {
  readonly eventsOut: EventsOut
  readonly news: AppserviceNews
  readonly ofRooms: RoomAppservices
  readonly queries: AppserviceQueries
  readonly hosted: HostedAppservices
  readonly client: AppserviceClient
}

export async function openAppserviceQueues(deps: {
  readonly config: Config
  readonly db: Database
  readonly ledger: Ledger
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly client: AppserviceClient
}): Promise<AppserviceQueues> {
  const { config, log, client } = deps
  const names = await openAppserviceNames(config, deps.random, log)
  const parts = { ...deps, serverName: config.server_name, registry: names.registry }
  const news = createAppserviceNews(parts)
  const eventsOut = createEventsOut({ ...parts, news })
  const hosted = createHostedAppservices(parts)
  const queries = createAppserviceQueries({ ...parts, hosted })
  const ofRooms: RoomAppservices = {
    requireAlias: names.exclusive.requireAlias,
    isUserOf: ({ id }, userId) => names.registry.claimsOn('users', userId).some(({ service }) => service.id === id),
    findAlias: queries.findAlias,
    aliasesChanged: eventsOut.aliasesChanged,
    committed: eventsOut.committed,
    missed: eventsOut.missed,
    typing: eventsOut.typing,
    read: eventsOut.read,
    presenceChanged: news.presenceChanged,
    deviceNews: news,
  }
  return { ...names, eventsOut, news, ofRooms, queries, hosted, client }
}

/** Application services, as endpoints know them. */
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
  readonly queues: AppserviceQueues
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly sessions: Sessions
  readonly devices: Pick<Devices, 'announce'>
}): Promise<AppserviceServices> {
  const { registry, eventsOut, hosted, client } = deps.queues
  const serverName = deps.config.server_name
  const accounts = createAppserviceAccounts({ ...deps, registry })
  await accounts.makeSenders()
  return {
    registry,
    accounts,
    hosted,
    callers: createAppserviceCallers({ ...deps, serverName, registry, heard: eventsOut.heard }),
    thirdParty: createThirdParty({ ...deps, registry, hosted, client }),
    networkRooms: createNetworkRooms({ db: deps.db, rooms: deps.registry }),
    ping: (by, id, transactionId) => pingAppservice(client, by, id, transactionId),
  }
}

/** Longer than any server goes on sending what was taken. */
const TRANSACTIONS_KEPT_MS = 30 * 24 * 3_600_000

/** What the janitor removes. */
export const appserviceChores = [
  (tx: Tx, now: number, atMost: number) => forgetTaken(tx, now - TRANSACTIONS_KEPT_MS, atMost),
  newsChore,
] as const

/** Starts hosted services and begins to send. Whoever calls this closes `eventsOut`, after the client. */
export async function startAppservices(
  { eventsOut, hosted, client }: AppserviceQueues,
  deps: Omit<Parameters<typeof createHostedHost>[0], 'accounts' | 'callers'> & {
    readonly appservices: AppserviceServices
    readonly parts: StartParts
    readonly position: number
  },
): Promise<void> {
  await hosted.start((service) => createHostedHost({ ...deps, ...deps.appservices }, service))
  await eventsOut.start(deps.parts, deps.position, createDelivery(client, hosted))
}
