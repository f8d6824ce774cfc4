import type { Logger } from 'pino'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import {
  forgetOldNews,
  getNews,
  type MessageTaker,
  type News,
  type NewsKind,
  type NewsRow,
  putDeviceListNews,
  putNews,
  removeNews,
  servicesBeside,
  takeMessages,
  trimNews,
} from '../../store/appservices/appservice-news.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import type { Clock } from '../clock.ts'
import {
  APPSERVICE_NEWS_COUNTED_EVERY,
  APPSERVICE_NEWS_KEPT_MS,
  MAX_APPSERVICE_NEWS,
  MAX_NEWS_PER_APPSERVICE_TRANSACTION,
} from '../limits.ts'
import type { Appservice } from './appservice.ts'
import type { AppserviceRegistry } from './registry.ts'

/** The ids of services that must hear of a change. They are found before the change is written. */
export type ServiceIds = readonly string[]

/** To-device messages to services' users. */
export interface ServiceMessages {
  /** The services of these users that want their messages; most often none. */
  takersOf(userIds: Iterable<UserId>): readonly MessageTaker[]
  /** Runs in the ledger's commit that puts the messages into inboxes, under its position. */
  take(tx: Tx, takers: readonly MessageTaker[], position: number): Promise<void>
  /** Call this after that commit. */
  taken(takers: readonly MessageTaker[]): void
}

/** Changes of keys and devices, for services. */
export interface ServiceDeviceNews {
  /** The services that share a room with a user. */
  servicesSharingWith(userNid: number): Promise<ServiceIds>
  /** Runs in the ledger's commit in which the user's devices changed. */
  devicesChanged(tx: Tx, services: ServiceIds, userNid: number): Promise<void>
  /** The services of these users, whose keys were claimed. */
  ownersOf(userIds: Iterable<UserId>): ServiceIds
  /** Runs in the ledger's commit in which the keys were claimed. */
  keysClaimed(tx: Tx, devices: readonly { readonly userId: UserId; readonly deviceId: string }[]): Promise<void>
  /** Call this after either commit. */
  queued(services: ServiceIds): void
}

export const NO_DEVICE_NEWS: ServiceDeviceNews = {
  servicesSharingWith: async () => [],
  devicesChanged: async () => {},
  ownersOf: () => [],
  keysClaimed: async () => {},
  queued: () => {},
}

/**
 * What services get beside events, if they ask for it. Each item is a row until the service has answered; a newer row replaces an older
 * one. If no service asks, nothing is read or written.
 */
export interface AppserviceNews extends ServiceMessages, ServiceDeviceNews {
  /** A user's presence changed. */
  presenceChanged(userNid: number, userId: UserId): Promise<void>
  /** A user has read. Public receipts go to the services of the room, private ones to the user's own services. */
  receipt(services: readonly Appservice[], name: string, event: JsonObject): Promise<void>
  /** Services that may get what only their own user may see. */
  ephemeralOwners(userId: UserId): readonly Appservice[]
  /** The oldest unanswered rows, as many as one transaction may hold. */
  read(id: string, after: number): Promise<{ readonly rows: readonly NewsRow[]; readonly isFull: boolean }>
  /** A service has answered all rows up to this number. */
  answered(id: string, upTo: number): void
  /** Calls `listener` with each service that has new rows. */
  onNews(listener: (id: string) => void): void
}

export const newsChore = (tx: Tx, now: number, atMost: number) =>
  forgetOldNews(tx, now - APPSERVICE_NEWS_KEPT_MS, atMost)

export function createAppserviceNews(deps: {
  readonly db: Database
  readonly ledger: Ledger
  readonly serverName: ServerName
  readonly registry: AppserviceRegistry
  readonly clock: Clock
  readonly log: Logger
}): AppserviceNews {
  const { db, ledger, serverName, registry, clock, log } = deps
  let listener: (id: string) => void = () => {}
  let forEphemeral: ServiceIds = []
  let forDevices: ServiceIds = []
  /** Rows that may have been added for a service since the last count. */
  const uncounted = new Map<string, number>()
  const renew = () => {
    const idsOf = (wants: (service: Appservice) => boolean) =>
      registry
        .all()
        .filter(wants)
        .map(({ id }) => id)
    forEphemeral = idsOf(wantsEphemeral)
    forDevices = idsOf(wantsDeviceData)
  }
  registry.onChange(renew)
  renew()

  const inBackground = (work: Promise<unknown>) =>
    void work.catch((err: unknown) => log.debug({ err }, 'news for application services could not be written'))

  function claimants(userId: UserId, wants: (service: Appservice) => boolean): readonly Appservice[] {
    if (serverOf(userId) !== serverName) return []
    return registry
      .claimsOn('users', userId)
      .map(({ service }) => service)
      .filter(wants)
  }

  function came(ids: Iterable<string>): void {
    for (const id of new Set(ids)) {
      const count = (uncounted.get(id) ?? APPSERVICE_NEWS_COUNTED_EVERY) + 1
      uncounted.set(id, count < APPSERVICE_NEWS_COUNTED_EVERY ? count : 0)
      if (count >= APPSERVICE_NEWS_COUNTED_EVERY) {
        inBackground(ledger.append((tx) => trimNews(tx, id, MAX_APPSERVICE_NEWS)))
      }
      listener(id)
    }
  }

  async function note(ids: ServiceIds, kind: Exclude<NewsKind, 'message'>, name: string, content = ''): Promise<void> {
    if (ids.length === 0) return
    const news: News[] = ids.map((appserviceId) => ({ appserviceId, kind, name, content }))
    await ledger.append(
      (tx) => putNews(tx, news, clock.now()),
      () => came(ids),
    )
  }

  return {
    takersOf(userIds) {
      if (forEphemeral.length === 0) return []
      return [...userIds].flatMap((userId) =>
        claimants(userId, wantsEphemeral).map((service) => ({
          ...{ appserviceId: service.id, userId },
          isOnly: wantsDeviceData(service),
        })),
      )
    },
    take: (tx, takers, position) => takeMessages(tx, takers, position, clock.now()),
    taken: (takers) => came(takers.map(({ appserviceId }) => appserviceId)),
    servicesSharingWith: async (userNid) => (forDevices.length === 0 ? [] : servicesBeside(db, userNid, forDevices)),
    devicesChanged: (tx, services, userNid) => putDeviceListNews(tx, services, userNid, clock.now()),
    ownersOf(userIds) {
      if (forDevices.length === 0) return []
      return [...userIds].flatMap((userId) => claimants(userId, wantsDeviceData).map(({ id }) => id))
    },
    async keysClaimed(tx, devices) {
      const news = devices.flatMap(({ userId, deviceId }) =>
        claimants(userId, wantsDeviceData).map(({ id }): News => {
          return { appserviceId: id, kind: 'keys', name: `${userId} ${deviceId}`, content: '' }
        }),
      )
      if (news.length > 0) await putNews(tx, news, clock.now())
    },
    queued: came,
    async presenceChanged(userNid, userId) {
      if (forEphemeral.length === 0) return
      await note(await servicesBeside(db, userNid, forEphemeral), 'presence', userId)
    },
    async receipt(services, name, event) {
      const ids = services.filter(wantsEphemeral).map(({ id }) => id)
      await note(ids, 'receipt', name, JSON.stringify(event))
    },
    ephemeralOwners: (userId) => (forEphemeral.length === 0 ? [] : claimants(userId, wantsEphemeral)),
    async read(id, after) {
      const rows = await getNews(db, id, after, MAX_NEWS_PER_APPSERVICE_TRANSACTION)
      return { rows, isFull: rows.length === MAX_NEWS_PER_APPSERVICE_TRANSACTION }
    },
    answered: (id, upTo) => inBackground(ledger.append((tx) => removeNews(tx, id, upTo))),
    onNews(given) {
      listener = given
    },
  }
}

export function wantsEphemeral({ registration }: Appservice): boolean {
  return registration.receive_ephemeral && isSent(registration)
}

export function wantsDeviceData({ registration }: Appservice): boolean {
  return registration.receive_device_data && isSent(registration)
}

function isSent({ url, hosted }: Appservice['registration']): boolean {
  return url !== null || hosted !== undefined
}
