import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { ARCHIVE_RECORDED_BYTES, MAX_ARCHIVE_BYTES } from '../../limits/oauth.ts'
import type { DiskReserve } from '../../media/disk-reserve.ts'

/** The files of archives, in a directory that only this server reads. */
export interface ArchiveFiles {
  /**
   * Opens a file to go on writing it. What is behind the first bytes goes.
   * @throws ProtocolError 507 if the disk is almost full; Error if the file has fewer bytes
   */
  continue(name: string, bytes: number): Promise<FileHandle>
  /** @throws ProtocolError 507 if the disk is almost full; Error if all files together have too many bytes */
  requireRoom(): Promise<void>
  /** Undefined if there is none. */
  read(name: string): Promise<{ readonly stream: Readable; readonly bytes: number } | undefined>
  remove(name: string): Promise<void>
  /** Bytes of all files. */
  size(): Promise<number>
  /** Deletes all files but these. */
  keepOnly(names: ReadonlySet<string>): Promise<void>
}

export function createArchiveFiles(directory: string, reserve: DiskReserve): ArchiveFiles {
  const pathOf = (name: string): string => join(directory, name)
  const names = (): Promise<string[]> => readdir(directory).catch(() => [])

  async function size(): Promise<number> {
    const sizes = (await names()).map(async (name) => (await stat(pathOf(name)).catch(() => undefined))?.size ?? 0)
    return (await Promise.all(sizes)).reduce((sum, each) => sum + each, 0)
  }

  return {
    async continue(name, bytes) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await reserve.require(directory, 0)
      const file = await open(pathOf(name), bytes === 0 ? 'w' : 'r+', 0o600)
      try {
        if ((await file.stat()).size < bytes) throw new Error('the file of an archive has lost bytes')
        await file.truncate(bytes)
        return file
      } catch (error) {
        await file.close()
        throw error
      }
    },
    async read(name) {
      const found = await stat(pathOf(name)).catch(() => undefined)
      return found && { stream: createReadStream(pathOf(name)), bytes: found.size }
    },
    remove: (name) => rm(pathOf(name), { force: true }),
    async requireRoom() {
      await reserve.require(directory, ARCHIVE_RECORDED_BYTES)
      if ((await size()) >= MAX_ARCHIVE_BYTES) throw new Error('the archives of all people together are too large')
    },
    size,
    async keepOnly(wanted) {
      for (const name of await names()) if (!wanted.has(name)) await rm(pathOf(name), { force: true })
    },
  }
}
