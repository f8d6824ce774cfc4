import { createHash } from 'node:crypto'
import type { MediaStore } from '../media/media-store.ts'
import { mediaName } from './backup-files.ts'
import type { BackupStore } from './backup-store.ts'
import { atPace, type Pace } from './pace.ts'
import type { Seal } from './seal.ts'

/** Copies a medium to the place, over what is there. False, with nothing written, if the media store does not have it or has other bytes under its name. */
export async function copyMedium(
  parts: {
    readonly store: BackupStore
    readonly seal: Seal
    readonly media: Pick<MediaStore, 'open'>
    readonly pace: Pace
  },
  digest: string,
): Promise<boolean> {
  const { store, seal, media, pace } = parts
  const source = await media.open(Buffer.from(digest, 'hex'))
  if (source === undefined) return false
  const name = mediaName(seal.set, digest)
  try {
    await store.write(name, seal.seal(checked(atPace(pace, source), digest)))
    return true
  } catch (error) {
    if (error instanceof OtherBytes) return false
    throw error
  }
}

class OtherBytes extends Error {}

/** Fails at the end of bytes with another hash, so that they are not written. */
async function* checked(source: AsyncIterable<Buffer>, digest: string): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  for await (const chunk of source) {
    hash.update(chunk)
    yield chunk
  }
  if (hash.digest('hex') !== digest) throw new OtherBytes()
}
