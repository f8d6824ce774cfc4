import type { AppserviceNews } from '../appservices/news.ts'
import type { HomeserverBase } from '../base.ts'
import { createInboxes, type Inboxes } from '../e2e/inboxes.ts'
import { createDeviceLists, type DeviceLists, type RemoteDeviceLists } from '../keys/device-lists.ts'
import { createDeviceKeyCounts, type DeviceKeyCounts } from '../keys/key-counts.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import { createEphemeralStream, type EphemeralStream } from './ephemeral-stream.ts'
import type { WatchedSessions } from './held-syncs.ts'
import { createLedgerWaker, type LedgerWaker } from './ledger-waker.ts'
import { createNotifier, type Notifier } from './notifier.ts'
import { createPresence, type Presence, type PresenceOf } from './presence.ts'
import { presenceListeners } from './presence-listeners.ts'
import { createProfileNews, type ProfileNews } from './profile-news.ts'
import type { UserRooms } from './user-rooms.ts'

/** What wakes syncs, and what they show besides rooms: presence, devices, and messages to devices. */
export interface SyncBase {
  readonly notifier: Notifier
  readonly ledgerWaker: LedgerWaker
  readonly profileNews: ProfileNews
  readonly ephemeral: EphemeralStream
  readonly presence: Presence
  readonly inboxes: Inboxes
  readonly keyCounts: DeviceKeyCounts
  readonly deviceLists: DeviceLists
}

const MAX_DEVICES_IN_MEMORY = 50_000

export function createSyncBase(parts: {
  readonly base: Pick<HomeserverBase, 'config' | 'db' | 'ledger' | 'clock' | 'random' | 'log' | 'restores'> & {
    /** Syncs end with their sessions; without sessions none does. */
    readonly sessions?: WatchedSessions
  }
  readonly roomBase: { readonly registry: RoomRegistry; readonly userRooms: UserRooms }
  /** Application services, which get news of users and devices. */
  readonly services: Pick<AppserviceNews, 'presenceChanged' | 'servicesSharingWith' | 'devicesChanged' | 'queued'>
  /** Other servers, which get news of our users and their devices. */
  readonly sending: {
    readonly deviceListNews: RemoteDeviceLists
    presenceNews(userNid: number, is: PresenceOf): Promise<void>
  }
}): SyncBase {
  const { config, db, ledger, sessions, clock, random, log, restores } = parts.base
  const { services } = parts
  const { registry, userRooms } = parts.roomBase
  const { deviceListNews: remote, presenceNews: tellServers } = parts.sending
  const notifier = createNotifier(sessions)
  const ephemeral = createEphemeralStream(random, restores.epoch, notifier.moved)
  ledger.onMoved(notifier.moved)
  const { changed, toServers } = presenceListeners({ registry, userRooms, notifier, services, log, tellServers })
  const presence = createPresence({
    clock,
    enabled: config.presence.enabled,
    nextPosition: ephemeral.next,
    changed,
    toServers,
  })
  return {
    notifier,
    ledgerWaker: createLedgerWaker({ ledger, notifier }),
    profileNews: createProfileNews({ ledger, registry, userRooms, notifier }),
    ephemeral,
    presence,
    inboxes: createInboxes({ db, ledger }),
    keyCounts: createDeviceKeyCounts({ db, ledger, notifier, maxDevices: MAX_DEVICES_IN_MEMORY }),
    deviceLists: createDeviceLists({ db, ledger, notifier, userRooms, remote, services }),
  }
}
