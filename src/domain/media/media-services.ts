import { createMediaPeers } from '../../outbound/peer-media.ts'
import { createAudit } from '../admin/audit.ts'
import type { Base } from '../base.ts'
import type { Gate } from '../moderation/gate.ts'
import { createReceivingServices } from './arrivals.ts'
import { createByteAllowance } from './byte-allowance.ts'
import { createDecoder } from './decoder.ts'
import { createDiskReserve } from './disk-reserve.ts'
import { createDownloads, type Downloads } from './downloads.ts'
import { createLibrary } from './library.ts'
import { createMediaDesk, type MediaDesk } from './media-desk.ts'
import { incomingDirectory, openMediaStore } from './open-store.ts'
import { createPreviews, type Previews } from './previews.ts'
import { createRemoteMedia } from './remote-media.ts'
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
  readonly rooms: { readonly moderation: { readonly gate: Pick<Gate, 'media'> } }
}): MediaParts {
  const { config, db, clock, random, log } = parts.base
  const { federation, client } = parts.base.outbound
  const { media: metrics, bounds } = parts.base.metrics
  const spool = createSpool(
    incomingDirectory(config.data_dir),
    createDiskReserve(config.media.reserved_disk_bytes, bounds),
  )
  const { store, close } = openMediaStore({ config, log })
  const arrivals = createReceivingServices()
  const library = createLibrary({ db, clock, store, log })
  const allowance = createByteAllowance({ clock, isEnabled: () => config.rate_limits.enabled })
  const peers = createMediaPeers({ federation, client })
  const remote = createRemoteMedia({ config, clock, peers, spool, library, allowance, metrics })
  const decoder = createDecoder()
  const sweep = createSweep({ config, db, clock, store, spool })
  return {
    services: {
      uploads: createUploads({ config, db, clock, random, spool, library, arrivals, metrics }),
      downloads: createDownloads({
        config,
        db,
        clock,
        library,
        arrivals,
        remote,
        gate: parts.rooms.moderation.gate,
        audit: createAudit({ db, clock }),
        log,
      }),
      thumbnails: createThumbnails({ db, library, spool, decoder, metrics }),
      previews: createPreviews({ config, db, clock, random, client, spool, library }),
      desk: createMediaDesk({ config, db, clock, sweep }),
    },
    sweep,
    async close() {
      await decoder.close()
      await close()
    },
  }
}
