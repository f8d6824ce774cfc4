import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, rmdir, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { BACKUP_BYTES_PER_SYNC } from '../limits/backups.ts'
import type { BackupStore, WrittenFile } from './backup-store.ts'
import { inPieces } from './chunks.ts'

/** Files that are being written. */
const PART = '.part'
const CHUNK_BYTES = 256 * 1024

/** Backups in a directory of this machine, or of one whose file system is mounted here. */
export function createDirectoryBackups(directory: string): BackupStore {
  const pathOf = (name: string): string => join(directory, name)

  async function* walk(folder: string): AsyncGenerator<string> {
    const entries = await readdir(pathOf(folder), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
      throw explained(error)
    })
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const name = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (entry.isDirectory()) yield* walk(name)
      else yield name
    }
  }

  function explained(error: unknown): Error {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOSPC' || code === 'EDQUOT')
      return new Error(`the disk of ${directory} is full: make room there, or name another place, and begin again`)
    return new Error(`${directory} cannot be used: ${(error as Error).message}`)
  }

  async function writeTo(path: string, part: string, source: AsyncIterable<Buffer>): Promise<WrittenFile> {
    await makeFolder(dirname(path))
    const hash = createHash('sha256')
    let bytes = 0
    const file = await open(part, 'wx', 0o600)
    try {
      let unsynced = 0
      for await (const chunk of inPieces(source, CHUNK_BYTES)) {
        hash.update(chunk)
        bytes += chunk.length
        unsynced += chunk.length
        await file.writeFile(chunk)
        if (unsynced < BACKUP_BYTES_PER_SYNC) continue
        // The commits of the database wait for the same disk, and not for all of a long file.
        await file.datasync()
        unsynced = 0
      }
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(part, path)
    // A file's name is part of its directory, which is synced separately.
    await syncFolder(dirname(path))
    return { bytes, sha256: hash.digest('hex') }
  }

  return {
    place: directory,
    async *list(beginning) {
      for await (const name of walk(beginning.slice(0, Math.max(0, beginning.lastIndexOf('/')))))
        if (name.startsWith(beginning) && !name.endsWith(PART)) yield name
    },
    async open(name) {
      try {
        const file = await open(pathOf(name), 'r')
        return file.createReadStream({ highWaterMark: CHUNK_BYTES }) as Readable
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw explained(error)
      }
    },
    async write(name, source) {
      const path = pathOf(name)
      // Another process may write a file of this name too.
      const part = `${path}.${randomUUID()}${PART}`
      try {
        return await writeTo(path, part, source)
      } catch (error) {
        await rm(part, { force: true }).catch(() => {})
        throw (error as NodeJS.ErrnoException).syscall === undefined ? error : explained(error)
      }
    },
    async remove(name) {
      await rm(pathOf(name), { force: true })
      // Fails while there are other files.
      await rmdir(dirname(pathOf(name))).catch(() => {})
    },
    async removeLastingly(name) {
      await rm(pathOf(name), { force: true })
      await syncFolder(dirname(pathOf(name))).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
      })
    },
    async free() {
      await makeFolder(directory).catch((error: unknown) => {
        throw explained(error)
      })
      const { bsize, bavail } = await statfs(directory)
      return bsize * bavail
    },
    async tidy() {
      const folders = new Set([directory])
      for await (const name of walk('')) {
        if (name.endsWith(PART)) await rm(pathOf(name), { force: true })
        for (let above = dirname(name); above !== '.'; above = dirname(above)) folders.add(pathOf(above))
      }
      // A killed writer may have made names that it did not sync any more, and what is there is not written again.
      for (const folder of folders) await syncFolder(folder)
    },
    close: async () => {},
  }
}

/** Makes a folder and those above it, with names that survive a power loss. */
async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  const top = dirname(resolve(first))
  for (let above = dirname(resolve(path)); above.length >= top.length; above = dirname(above)) {
    await syncFolder(above)
    if (above === top) return
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  await folder.sync().finally(() => folder.close())
}
