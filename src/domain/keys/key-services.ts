import type { Config } from '../../config/schema.ts'
import type { Database } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import type { ServiceDeviceNews } from '../appservices/news.ts'
import type { Clock } from '../clock.ts'
import type { FanOut } from '../fan-out.ts'
import type { Users } from '../users.ts'
import { createKeyClaims, type KeyClaims } from './claim.ts'
import { type CrossSigning, createCrossSigning } from './cross-signing.ts'
import type { DeviceLists } from './device-lists.ts'
import type { DeviceKeyCounts } from './key-counts.ts'
import { createKeyQueries, type KeyQueries } from './query.ts'
import type { RemoteKeys } from './remote-keys.ts'
import { createKeySignatures, type KeySignatures } from './signatures.ts'
import { createKeyUploads, type KeyUploads } from './upload.ts'

/** The services about end-to-end keys, as endpoints know them. */
export interface KeyServices {
  readonly keyUploads: KeyUploads
  readonly keyQueries: KeyQueries
  readonly keyClaims: KeyClaims
  readonly crossSigning: CrossSigning
  readonly keySignatures: KeySignatures
}

export function createKeyServices(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly ledger: Ledger
  readonly clock: Clock
  readonly users: Users
  readonly deviceLists: DeviceLists
  readonly counts: DeviceKeyCounts
  readonly remote: RemoteKeys
  readonly fanOut: FanOut
  readonly services: ServiceDeviceNews
}): KeyServices {
  const parts = { ...deps, serverName: deps.config.server_name }
  return {
    keyUploads: createKeyUploads(parts),
    keyQueries: createKeyQueries(parts),
    keyClaims: createKeyClaims(parts),
    crossSigning: createCrossSigning(parts),
    keySignatures: createKeySignatures(parts),
  }
}
