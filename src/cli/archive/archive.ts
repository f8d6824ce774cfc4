import { once } from 'node:events'
import { createWriteStream, existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { TAR_END, tarHeader, tarPadding } from '../../core/media/tar.ts'

/** A `.tar.gz` that is being written. */
export interface Archive {
  add(name: string, content: string | Buffer): Promise<void>
  /** @param bytes how many the stream has; with another number it fails */
  addStream(name: string, bytes: number, source: AsyncIterable<Buffer>): Promise<void>
  /** @param piece of files that have their headers already */
  push(piece: Buffer): Promise<void>
}

/**
 * Writes an archive that only its owner can read. It has its name once it is whole; if `fill` fails, nothing is left.
 * @throws Error if the file is there already
 */
export async function writeArchive<T>(path: string, now: number, fill: (archive: Archive) => Promise<T>): Promise<T> {
  if (existsSync(path)) throw new Error(`${path} is there already`)
  const part = `${path}.part`
  const file = createWriteStream(part, { flags: 'wx', mode: 0o600 })
  const gzip = createGzip({ level: 6 })
  gzip.pipe(file)
  // The error is that of the file; `finished` below throws it.
  gzip.on('error', () => {})
  const written = finished(file)
  written.catch((error: Error) => gzip.destroy(error))

  async function push(piece: Buffer): Promise<void> {
    if (gzip.destroyed) await written
    if (!gzip.write(piece)) await Promise.race([once(gzip, 'drain'), written])
  }

  async function addStream(name: string, bytes: number, source: AsyncIterable<Buffer>): Promise<void> {
    await push(tarHeader(name, bytes, Math.floor(now / 1000)))
    let seen = 0
    for await (const piece of source) {
      seen += piece.length
      await push(piece)
    }
    if (seen !== bytes) throw new Error(`${name} has ${seen} bytes instead of ${bytes}`)
    await push(tarPadding(bytes))
  }

  try {
    const result = await fill({
      push,
      addStream,
      add(name, content) {
        const bytes = Buffer.from(content)
        return addStream(name, bytes.length, one(bytes))
      },
    })
    await push(TAR_END)
    gzip.end()
    await written
    await rename(part, path)
    return result
  } catch (error) {
    gzip.destroy()
    file.destroy()
    // A file of the same name that somebody else writes is not ours to remove.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') await rm(part, { force: true })
    throw error
  }
}

async function* one(bytes: Buffer): AsyncGenerator<Buffer> {
  if (bytes.length > 0) yield bytes
}
