import type { Readable } from 'node:stream'
import type { ByteRange } from '../../core/media/byte-range.ts'
import type { SpooledFile } from './spool.ts'

/**
 * Where bytes are, named by what they are: nothing in it ever changes, and the same bytes twice are one.
 *
 * All functions throw a `StoreFailure` when the store cannot be used.
 */
export interface MediaStore {
  /** Takes a file over: from then on it survives a loss of power. Again does no harm. */
  put(file: SpooledFile): Promise<void>
  /** @returns undefined where there is no such content */
  open(digest: Buffer, range?: ByteRange): Promise<Readable | undefined>
  /** Content that is not there is removed too. */
  remove(digest: Buffer): Promise<void>
}
