import type { Readable } from 'node:stream'

/** What a written file is in the store. */
export interface WrittenFile {
  readonly bytes: number
  /** Hex. */
  readonly sha256: string
}

/**
 * Where backups are: named files in a directory, or objects in an S3 service. Names have `/` between their parts. All functions throw an
 * Error with a message for the operator if the store cannot be used.
 */
export interface BackupStore {
  /** Its place, as the operator names it. */
  readonly place: string
  /** The names that begin like this. */
  list(beginning: string): AsyncIterable<string>
  /** @returns undefined if there is no such file */
  open(name: string): Promise<Readable | undefined>
  /** Writes a whole file, or none: once this resolves it survives a power loss. Replaces one of that name. */
  write(name: string, source: AsyncIterable<Buffer>): Promise<WrittenFile>
  /** Succeeds for a missing file too. */
  remove(name: string): Promise<void>
  /** Like `remove`; once this resolves, no power loss brings the file back. */
  removeLastingly(name: string): Promise<void>
  /** Free space in bytes; undefined where nobody knows. */
  free(): Promise<number | undefined>
  /** Removes what killed writers left, and makes lasting what they wrote. */
  tidy(): Promise<void>
  close(): Promise<void>
}

/** A whole file of at most `maxBytes`; undefined if there is none. @throws Error if it is longer */
export async function readWhole(
  store: Pick<BackupStore, 'open' | 'place'>,
  name: string,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const stream = await store.open(name)
  if (stream === undefined) return undefined
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error(`${name} in ${store.place} is longer than it may be`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, bytes)
}
