import type { Readable } from 'node:stream'
import type { ByteRange } from '../../core/media/byte-range.ts'
import type { SpooledFile } from './spool.ts'

/**
 * Stores bytes by their hash: nothing in it ever changes, and equal files are stored once.
 *
 * All functions throw a `StoreFailure` if the store cannot be used.
 */
export interface MediaStore {
  /** Takes a file over. Once this resolves, it survives a power loss. A repeated call does no harm. */
  put(file: SpooledFile): Promise<void>
  /** @returns undefined if there is no such content */
  open(digest: Buffer, range?: ByteRange): Promise<Readable | undefined>
  /** Succeeds for missing content too. */
  remove(digest: Buffer): Promise<void>
}
