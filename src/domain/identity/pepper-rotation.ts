import { setTimeout as pause } from 'node:timers/promises'
import type { Database, Reader, Tx } from '../../store/db/db.ts'
import {
  countHashBlocks,
  deleteOldHashes,
  deleteOldPeppers,
  ensureNextPepper,
  findNextPepper,
  findPepper,
  findRotation,
  hashMoreBindings,
  hasOldPeppers,
  lockPeppers,
  switchPeppers,
} from '../../store/identity/peppers.ts'
import type { Clock, Random } from '../clock.ts'
import type { PepperLevels } from './identity-metrics.ts'

/**
 * Gives lookups a new pepper while lookups and bindings go on. Every binding is hashed with the next pepper, in parts, while the current
 * one is in use; one transaction makes the next one current; then the old hashes are deleted. The progress is in the database, so a later
 * call continues from there, and two processes share the work.
 */
export interface PepperRotation {
  /** The progress, whichever process rotates. */
  levels(): Promise<PepperLevels>
  /**
   * Rotates if the pepper is at least this old, and always finishes a rotation that was begun. Returns how many bindings this call
   * hashed; undefined if there was nothing to rotate, or it was stopped.
   */
  rotate(options?: { readonly minAgeMs?: number; readonly stop?: () => boolean }): Promise<number | undefined>
}

/** Anybody who binds an address waits for this many at most. */
const BINDINGS_AT_ONCE = 2_000
/** Old hashes, about ten thousand. Nobody waits for their deletion. */
const BLOCKS_AT_ONCE = 200
/** A part takes about as long itself. On a busy machine a rotation must still come to an end. */
const LONGEST_PAUSE_MS = 25
const PEPPER_BYTES = 16
const NEVER = (): boolean => false

export function createPepperRotation(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
}): PepperRotation {
  const { db, clock, random } = deps

  /** The pepper to rotate to; undefined if no rotation was begun and the current pepper is younger than this. */
  async function begin(minAgeMs: number): Promise<number | undefined> {
    const isOld = async (reader: Reader) => clock.now() - (await findPepper(reader)).since >= minAgeMs
    // Mostly there is nothing to do, and nobody has to wait until that is found.
    if (!(await isOld(db)) && (await findNextPepper(db)) === undefined) return undefined
    const pepper = random.bytes(PEPPER_BYTES).toString('hex')
    return db.tx(async (tx) => {
      await lockPeppers(tx)
      const now = clock.now()
      return (await isOld(tx)) ? ensureNextPepper(tx, pepper, now) : findNextPepper(tx)
    })
  }

  /** Works in a transaction, and then leaves as much time to lookups. */
  async function part<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const from = performance.now()
    const result = await db.tx(work)
    await pause(Math.min(performance.now() - from, LONGEST_PAUSE_MS))
    return result
  }

  /** Returns how many it hashed; undefined if it was stopped. */
  async function hashAll(pepperNid: number, stop: () => boolean): Promise<number | undefined> {
    let total = 0
    while (!stop()) {
      const hashed = await part(async (tx) => {
        await lockPeppers(tx)
        return hashMoreBindings(tx, pepperNid, BINDINGS_AT_ONCE)
      })
      if (hashed === 0) return total
      total += hashed
    }
    return undefined
  }

  async function tidy(stop: () => boolean): Promise<void> {
    if (!(await hasOldPeppers(db))) return
    const blocks = await countHashBlocks(db)
    for (let block = 0; block < blocks; block += BLOCKS_AT_ONCE) {
      if (stop()) return
      await part((tx) => deleteOldHashes(tx, block, BLOCKS_AT_ONCE))
    }
    await db.tx(async (tx) => {
      await lockPeppers(tx)
      await deleteOldPeppers(tx)
    })
  }

  return {
    async levels() {
      const row = await findRotation(db)
      if (row === undefined) throw new Error('there is no current pepper')
      const { since, hashed_to, last } = row
      return { since, progress: hashed_to === null || last === null ? 1 : hashed_to / last }
    },
    async rotate({ minAgeMs = 0, stop = NEVER } = {}) {
      const pepperNid = await begin(minAgeMs)
      if (pepperNid === undefined) {
        await tidy(stop)
        return undefined
      }
      const hashed = await hashAll(pepperNid, stop)
      if (hashed === undefined) return undefined
      await db.tx(async (tx) => {
        await lockPeppers(tx)
        await switchPeppers(tx, pepperNid, clock.now())
      })
      await tidy(stop)
      return hashed
    },
  }
}
