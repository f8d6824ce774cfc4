import type { Readable } from 'node:stream'
import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import type { ByteRange } from '../../core/media/byte-range.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import { bindContent, noteLost, wantContent } from '../../store/media/media.ts'
import type { Clock } from '../clock.ts'
import type { MediaStore } from './media-store.ts'
import type { SpooledFile } from './spool.ts'
import { StoreFailure } from './store-failure.ts'

/** Stored content, and the only way to make rows that refer to it. */
export interface Library {
  /**
   * Stores a file unless it is stored already, and runs `refer` in the transaction that refers to it. The file leaves the spool in any
   * case.
   * @throws StoreFailure
   */
  keep<T>(file: SpooledFile, refer: (tx: Tx, now: number) => Promise<T>): Promise<T>
  /** @throws StoreFailure; `M_NOT_FOUND` if the store has lost it */
  open(digest: Buffer, range?: ByteRange): Promise<Readable>
}

/** Errors of the store are logged at most this often. */
const COMPLAIN_EVERY_MS = 60_000

export function createLibrary(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly store: MediaStore
  readonly log: Logger
}): Library {
  const { db, clock, store, log } = deps
  let complainedAt = Number.NEGATIVE_INFINITY

  function complain(error: unknown): never {
    if (error instanceof StoreFailure && clock.now() - complainedAt >= COMPLAIN_EVERY_MS) {
      complainedAt = clock.now()
      log.error({ err: error.cause }, 'the store of media cannot be used')
    }
    throw error
  }

  async function keep<T>(file: SpooledFile, refer: (tx: Tx, now: number) => Promise<T>): Promise<T> {
    const isThere = await db.tx((tx) => wantContent(tx, file.digest, file.bytes, clock.now()))
    if (!isThere) await store.put(file)
    return db.tx(async (tx) => {
      // This happens only if, at this very moment, a sweep removes content that nobody wanted for an hour.
      if (!(await bindContent(tx, file.digest))) throw new StoreFailure(new Error('content was swept while it came in'))
      return refer(tx, clock.now())
    })
  }

  return {
    async keep(file, refer) {
      try {
        return await keep(file, refer)
      } catch (error) {
        return complain(error)
      } finally {
        await file.discard()
      }
    },
    async open(digest, range) {
      const content = await store.open(digest, range).catch(complain)
      if (content !== undefined) return content
      log.error({ digest: digest.toString('hex') }, 'the store has lost media')
      await db.tx((tx) => noteLost(tx, digest))
      throw new ProtocolError('M_NOT_FOUND', 'This media is lost.')
    },
  }
}
