import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { createGuardedClient, type GuardedClient } from '../../outbound/http.ts'
import { createMediaPeers } from '../../outbound/peer-media.ts'
import type { Base } from '../base.ts'
import { MAX_STORE_CONNECTIONS } from '../limits.ts'
import { createReceivingServices } from './arrivals.ts'
import { createByteAllowance } from './byte-allowance.ts'
import { createDecoder } from './decoder.ts'
import { createDirectoryStore } from './directory-store.ts'
import { createDiskReserve } from './disk-reserve.ts'
import { createDownloads, type Downloads } from './downloads.ts'
import { createLibrary } from './library.ts'
import { createMediaDesk, type MediaDesk } from './media-desk.ts'
import { createPreviews, type Previews } from './previews.ts'
import { createRemoteMedia } from './remote-media.ts'
import { createS3Store } from './s3-store.ts'
import { createSpool } from './spool.ts'
import { createSweep, type Sweep } from './sweep.ts'
import { createThumbnails, type Thumbnails } from './thumbnails.ts'
import { createUploads, type Uploads } from './uploads.ts'

/** Uploads, downloads, thumbnails and previews. */
export interface MediaServices {
  readonly uploads: Uploads
  readonly downloads: Downloads
  readonly thumbnails: Thumbnails
  readonly previews: Previews
  readonly desk: MediaDesk
}

export interface MediaParts {
  readonly services: MediaServices
  readonly sweep: Sweep
  close(): Promise<void>
}

export function createMediaServices(parts: {
  readonly base: Pick<Base, 'config' | 'db' | 'clock' | 'random' | 'metrics' | 'log' | 'outbound'>
}): MediaParts {
  const { config, db, clock, random, log } = parts.base
  const { federation, client } = parts.base.outbound
  const { media: metrics, bounds } = parts.base.metrics
  const directory = join(config.data_dir, 'media')
  const spool = createSpool(join(directory, 'incoming'), createDiskReserve(config.media.reserved_disk_bytes, bounds))
  const { store, close } = openStore({ config, log }, join(directory, 'files'))
  const arrivals = createReceivingServices()
  const library = createLibrary({ db, clock, store, log })
  const allowance = createByteAllowance({ clock, isEnabled: config.rate_limits.enabled })
  const peers = createMediaPeers({ federation, client })
  const remote = createRemoteMedia({ config, clock, peers, spool, library, allowance, metrics })
  const decoder = createDecoder()
  const sweep = createSweep({ config, db, clock, store, spool })
  return {
    services: {
      uploads: createUploads({ config, db, clock, random, spool, library, arrivals, metrics }),
      downloads: createDownloads({ config, db, clock, library, arrivals, remote, log }),
      thumbnails: createThumbnails({ db, library, spool, decoder, metrics }),
      previews: createPreviews({ config, db, clock, random, client, spool, library }),
      desk: createMediaDesk({ config, db, sweep }),
    },
    sweep,
    async close() {
      await decoder.close()
      await close()
    },
  }
}

/** Connections to an external store are made when it is first used. */
function openStore(deps: { readonly config: Config; readonly log: Logger }, directory: string) {
  const { config, log } = deps
  if (config.media.store === 'directory') return { store: createDirectoryStore(directory), close: async () => {} }
  let opened: Promise<GuardedClient> | undefined
  const client = () => {
    opened ??= createGuardedClient({ config, log, connections: MAX_STORE_CONNECTIONS })
    return opened
  }
  return { store: createS3Store(config.media.s3, client), close: async () => (await opened)?.close() }
}
