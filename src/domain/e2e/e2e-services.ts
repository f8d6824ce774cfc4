import type { Config } from '../../config/schema.ts'
import type { Database } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import type { ServiceMessages } from '../appservices/news.ts'
import type { Clock } from '../clock.ts'
import type { FanOut } from '../fan-out.ts'
import type { Notifier } from '../sync/notifier.ts'
import type { Inboxes } from './inboxes.ts'
import { createKeyBackups, type KeyBackups } from './key-backups.ts'
import { createReceivedMessages, type ReceivedMessages } from './received-messages.ts'
import { createToDevice, type RemoteToDevice, type ToDevice } from './to-device.ts'

/** What clients need to encrypt from end to end. */
export interface E2eServices {
  readonly toDevice: ToDevice
  readonly receivedMessages: ReceivedMessages
  readonly keyBackups: KeyBackups
}

export function createE2eServices(deps: {
  readonly config: Config
  readonly db: Database
  readonly ledger: Ledger
  readonly clock: Clock
  readonly inboxes: Inboxes
  readonly notifier: Pick<Notifier, 'wakeUsers'>
  readonly remote: RemoteToDevice
  readonly fanOut: FanOut
  readonly services: ServiceMessages
}): E2eServices {
  const serverName = deps.config.server_name
  return {
    toDevice: createToDevice({ ...deps, serverName }),
    receivedMessages: createReceivedMessages({ ...deps, serverName }),
    keyBackups: createKeyBackups(deps),
  }
}
