import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { Federation } from '../../outbound/federation.ts'
import { createGuardedClient, type GuardedClient } from '../../outbound/http.ts'
import { createMediaPeers } from '../../outbound/peer-media.ts'
import type { Database } from '../../store/db/db.ts'
import type { BoundMetrics } from '../bound-metrics.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_STORE_CONNECTIONS } from '../limits.ts'
import { createReceivingServices } from './arrivals.ts'
import { createByteAllowance } from './byte-allowance.ts'
import { createDecoder } from './decoder.ts'
import { createDirectoryStore } from './directory-store.ts'
import { createDiskReserve } from './disk-reserve.ts'
import { createDownloads, type Downloads } from './downloads.ts'
import { createLibrary } from './library.ts'
import { createMediaDesk, type MediaDesk } from './media-desk.ts'
import type { MediaMetrics } from './media-metrics.ts'
import { createPreviews, type Previews } from './previews.ts'
import { createRemoteMedia } from './remote-media.ts'
import { createS3Store } from './s3-store.ts'
import { createSpool } from './spool.ts'
import { createSweep, type Sweep } from './sweep.ts'
import { createThumbnails, type Thumbnails } from './thumbnails.ts'
import { createUploads, type Uploads } from './uploads.ts'

/** Files: how they come, and how they are shown. */
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

export function createMediaServices(deps: {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly federation: Federation
  readonly client: GuardedClient
  readonly metrics: { readonly media: MediaMetrics; readonly bounds: BoundMetrics }
  readonly log: Logger
}): MediaParts {
  const { config, clock } = deps
  const directory = join(config.data_dir, 'media')
  const spool = createSpool(
    join(directory, 'incoming'),
    createDiskReserve(config.media.reserved_disk_bytes, deps.metrics.bounds),
  )
  const { store, close } = openStore(deps, join(directory, 'files'))
  const parts = { ...deps, metrics: deps.metrics.media, spool, arrivals: createReceivingServices() }
  const library = createLibrary({ ...parts, store })
  const allowance = createByteAllowance({ clock, isEnabled: config.rate_limits.enabled })
  const remote = createRemoteMedia({ ...parts, library, allowance, peers: createMediaPeers(deps) })
  const decoder = createDecoder()
  const sweep = createSweep({ ...parts, store })
  return {
    services: {
      uploads: createUploads({ ...parts, library }),
      downloads: createDownloads({ ...parts, library, remote }),
      thumbnails: createThumbnails({ ...parts, library, decoder }),
      previews: createPreviews({ ...parts, library }),
      desk: createMediaDesk({ ...parts, sweep }),
    },
    sweep,
    async close() {
      await decoder.close()
      await close()
    },
  }
}

/** Connections to a service are made when it is first called. */
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
