import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ProtocolError } from '../../core/errors.ts'
import { createDiskReserve, type DiskReserve } from './disk-reserve.ts'
import { StoreFailure } from './store-failure.ts'

/** A file that has arrived whole and is not stored yet. */
export interface SpooledFile {
  readonly path: string
  /** SHA-256. */
  readonly digest: Buffer
  readonly bytes: number
  /** Deletes it, wherever it is. A repeated call does no harm. */
  discard(): Promise<void>
}

/** A place on the local disk for files that are arriving. */
export interface Spool {
  /**
   * Writes a stream to a file, in constant memory. A failure leaves nothing behind.
   * @param announcedBytes its length, if known
   * @throws ProtocolError `M_TOO_LARGE`; `M_UNKNOWN` (503) if the disk fails, (507) if it is almost full
   * @throws whatever the stream throws
   */
  take(source: AsyncIterable<Buffer>, maxBytes: number, announcedBytes?: number): Promise<SpooledFile>
  /** A path for a file that other code writes there. */
  nameFor(): Promise<string>
  /** The file that other code wrote. */
  adopt(path: string): Promise<SpooledFile>
  /** The first bytes of a file, or all if it has fewer. */
  beginning(file: SpooledFile, bytes: number): Promise<Buffer>
  /** Deletes such a file, if it exists. */
  remove(path: string): Promise<void>
  /** Deletes files that were left behind before a time. Returns how many. */
  sweep(before: number): Promise<number>
}

export function createSpool(directory: string, reserve: DiskReserve = createDiskReserve(0)): Spool {
  async function nameFor(): Promise<string> {
    await mkdir(directory, { recursive: true, mode: 0o700 }).catch(asFailure)
    return join(directory, randomUUID())
  }

  async function take(source: AsyncIterable<Buffer>, maxBytes: number, announcedBytes = 0): Promise<SpooledFile> {
    const path = await nameFor()
    await reserve.require(directory, announcedBytes)
    const discard = () => rm(path, { force: true })
    const file = await open(path, 'wx', 0o600).catch(asFailure)
    try {
      const written = await write(file, source, maxBytes, () => reserve.require(directory, 0))
      await file.close()
      return { path, ...written, discard }
    } catch (error) {
      await file.close()
      await discard()
      throw error
    }
  }

  return {
    take,
    nameFor,
    async adopt(path) {
      const hash = createHash('sha256')
      let bytes = 0
      for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
        hash.update(chunk)
        bytes += chunk.length
      }
      return { path, digest: hash.digest(), bytes, discard: () => rm(path, { force: true }) }
    },
    async beginning({ path }, bytes) {
      const chunks: Buffer[] = []
      for await (const chunk of createReadStream(path, { end: bytes - 1 }) as AsyncIterable<Buffer>) chunks.push(chunk)
      return Buffer.concat(chunks)
    },
    remove: (path) => rm(path, { force: true }),
    async sweep(before) {
      const names = await readdir(directory).catch(() => [])
      const old = await Promise.all(
        names.map(async (name) => {
          const found = await stat(join(directory, name)).catch(() => undefined)
          return found !== undefined && found.mtimeMs < before
        }),
      )
      const left = names.filter((_name, index) => old[index])
      for (const name of left) await rm(join(directory, name), { force: true })
      return left.length
    },
  }
}

/** The free space is checked again each time that this much was written: others write too. */
const LOOK_EVERY_BYTES = 4 * 1024 * 1024

async function write(file: FileHandle, source: AsyncIterable<Buffer>, maxBytes: number, look: () => Promise<void>) {
  const hash = createHash('sha256')
  let bytes = 0
  let nextLook = LOOK_EVERY_BYTES
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > maxBytes) throw tooLarge(maxBytes)
    if (bytes >= nextLook) {
      await look()
      nextLook = bytes + LOOK_EVERY_BYTES
    }
    hash.update(chunk)
    await file.writeFile(chunk).catch(asFailure)
  }
  return { digest: hash.digest(), bytes }
}

export function tooLarge(maxBytes: number): ProtocolError {
  return new ProtocolError('M_TOO_LARGE', `Files of more than ${maxBytes} bytes are not taken.`)
}

function asFailure(error: unknown): never {
  throw new StoreFailure(error)
}
