import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { MediaStore } from './media-store.ts'
import { StoreFailure } from './store-failure.ts'

/** Large chunks, so that reading a file takes few turns of the event loop. */
const CHUNK_BYTES = 256 * 1024

/** As many as the first two bytes of a digest have values. */
const FOLDERS = 256 * 256

/** Files below a directory of this machine, on the same file system as the spool. */
export function createDirectoryStore(directory: string): MediaStore {
  /** Whether the names of a folder and of the one above it are known to last: not those that somebody else is just making, or made before. */
  const isLasting = new Uint8Array(FOLDERS)

  /** Two levels of 256 directories keep each small. */
  function pathOf(digest: Buffer): string {
    const hex = digest.toString('hex')
    return join(directory, hex.slice(0, 2), hex.slice(2, 4), hex)
  }

  return {
    async put({ path, digest }) {
      const target = pathOf(digest)
      try {
        await mkdir(dirname(target), { recursive: true, mode: 0o700 })
        await synced(path, 'r+')
        await rename(path, target)
        // A file's name is part of its directory, which is synced separately.
        await synced(dirname(target), 'r')
        const folder = digest.readUInt16BE(0)
        if (isLasting[folder]) return
        await synced(dirname(dirname(target)), 'r')
        await synced(directory, 'r')
        isLasting[folder] = 1
      } catch (error) {
        throw new StoreFailure(error)
      }
    },
    async open(digest, range) {
      let file: FileHandle
      try {
        file = await open(pathOf(digest), 'r')
      } catch (error) {
        if (isAbsent(error)) return undefined
        throw new StoreFailure(error)
      }
      const part = range === undefined ? {} : { start: range.first, end: range.last }
      return file.createReadStream({ ...part, highWaterMark: CHUNK_BYTES })
    },
    async remove(digest) {
      await rm(pathOf(digest), { force: true }).catch((error: unknown) => {
        throw new StoreFailure(error)
      })
    },
  }
}

async function synced(path: string, flags: string): Promise<void> {
  const file = await open(path, flags)
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

const isAbsent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'
