import { join } from 'node:path'
import type { Base } from '../../base.ts'
import { createDiskReserve } from '../../media/disk-reserve.ts'
import type { MediaParts } from '../../media/media-services.ts'
import { createArchiveFiles } from './archive-files.ts'
import { type Archives, createArchives } from './archives.ts'

/** Archives of people's data, with the files that people uploaded. */
export function createArchiveServices(parts: {
  readonly base: Pick<Base, 'config' | 'db' | 'clock' | 'random' | 'log'>
  readonly media: { readonly services: Pick<MediaParts['services'], 'downloads'> }
}): Archives {
  const { config, db, clock, random, log } = parts.base
  const { downloads } = parts.media.services
  const reserve = createDiskReserve(config.media.reserved_disk_bytes)
  return createArchives({
    db,
    clock,
    random,
    log,
    files: createArchiveFiles(join(config.data_dir, 'archives'), reserve),
    openMedia: ({ digest, bytes }) =>
      downloads.open({ digest, bytes, contentType: '', fileName: undefined, isRemote: false }),
  })
}
