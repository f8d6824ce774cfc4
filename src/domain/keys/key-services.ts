import type { Config } from '../../config/schema.ts'
import type { ServiceDeviceNews } from '../appservices/news.ts'
import type { HomeserverBase } from '../base.ts'
import type { FanOut } from '../fan-out.ts'
import type { SyncBase } from '../sync/sync-base.ts'
import { createKeyClaims, type KeyClaims } from './claim.ts'
import { type CrossSigning, createCrossSigning } from './cross-signing.ts'
import { createKeyQueries, type KeyQueries } from './query.ts'
import type { RemoteKeys } from './remote-keys.ts'
import { createKeySignatures, type KeySignatures } from './signatures.ts'
import { createKeyUploads, type KeyUploads } from './upload.ts'

/** The services for end-to-end keys, as endpoints call them. */
export interface KeyServices {
  readonly keyUploads: KeyUploads
  readonly keyQueries: KeyQueries
  readonly keyClaims: KeyClaims
  readonly crossSigning: CrossSigning
  readonly keySignatures: KeySignatures
}

export function createKeyServices(parts: {
  readonly base: Pick<HomeserverBase, 'db' | 'ledger' | 'clock' | 'users'> & {
    readonly config: Pick<Config, 'server_name'>
  }
  readonly syncBase: Pick<SyncBase, 'deviceLists' | 'keyCounts'>
  readonly remote: RemoteKeys
  readonly fanOut: FanOut
  readonly services: ServiceDeviceNews
}): KeyServices {
  const { config, db, ledger, clock, users } = parts.base
  const { remote, fanOut, services } = parts
  const { deviceLists, keyCounts: counts } = parts.syncBase
  const serverName = config.server_name
  return {
    keyUploads: createKeyUploads({ db, deviceLists, counts }),
    keyQueries: createKeyQueries({ serverName, db, remote, fanOut }),
    keyClaims: createKeyClaims({ serverName, db, ledger, clock, counts, remote, fanOut, services }),
    crossSigning: createCrossSigning({ db, clock, deviceLists }),
    keySignatures: createKeySignatures({ serverName, db, users, deviceLists, remote }),
  }
}
