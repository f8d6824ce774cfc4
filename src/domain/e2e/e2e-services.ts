import type { ServiceMessages } from '../appservices/news.ts'
import type { HomeserverBase } from '../base.ts'
import type { FanOut } from '../fan-out.ts'
import type { SyncBase } from '../sync/sync-base.ts'
import { createKeyBackups, type KeyBackups } from './key-backups.ts'
import { createReceivedMessages, type ReceivedMessages } from './received-messages.ts'
import { createToDevice, type RemoteToDevice, type ToDevice } from './to-device.ts'

/** The services for end-to-end encryption. */
export interface E2eServices {
  readonly toDevice: ToDevice
  readonly receivedMessages: ReceivedMessages
  readonly keyBackups: KeyBackups
}

export function createE2eServices(parts: {
  readonly base: Pick<HomeserverBase, 'config' | 'db' | 'ledger' | 'clock'>
  readonly syncBase: Pick<SyncBase, 'inboxes' | 'notifier'>
  readonly remote: RemoteToDevice
  readonly fanOut: FanOut
  readonly services: ServiceMessages
}): E2eServices {
  const { config, db, ledger, clock } = parts.base
  const { remote, fanOut, services } = parts
  const { inboxes, notifier } = parts.syncBase
  const serverName = config.server_name
  return {
    toDevice: createToDevice({ serverName, ledger, clock, inboxes, notifier, remote, fanOut, services }),
    receivedMessages: createReceivedMessages({ serverName, ledger, clock, inboxes, notifier, services }),
    keyBackups: createKeyBackups({ db }),
  }
}
