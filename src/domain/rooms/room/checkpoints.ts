import type { Logger } from 'pino'
import { type StateMap, stateSpan } from '../../../core/state/trie.ts'
import type { Database } from '../../../store/db/db.ts'
import { distanceToCheckpoint, type StatePoint, saveCheckpoint } from '../../../store/events/state.ts'
import type { Room } from './room.ts'

/** Writes a room's whole state from time to time, so that loading the room never replays more than a bounded stretch of log. */
export interface Checkpoints {
  /** Writes a checkpoint if one is due. Called after each commit. */
  consider(room: Room): void
  /** Does the same for a point in the past, when history is added. Each piece of history branches off the one before. */
  considerPast(room: Room, point: StatePoint, state: StateMap): Promise<void>
}

const LEAST_CHANGES = 1000
/**
 * A checkpoint is written after this share of the state's keys has changed, so that the bytes of a checkpoint are spread over its changes.
 */
const SHARE_CHANGED = 1 / 8
/** When this many chains branch off one another, the newest gets a checkpoint whatever its length. */
const MOST_CHAINS = 16

/** Memory keeps the last checkpoint of this many chains of a room. */
const CHAINS_REMEMBERED = 64

export function createCheckpoints({ db, log }: { db: Database; log: Logger }): Checkpoints {
  /**
   * For each chain, the change after which the state was last written, as if all changes since then were in that chain. Minus infinity
   * means that a checkpoint is due anyway, NaN that the query for it is running.
   */
  const known = new WeakMap<Room, Map<number, number>>()

  function remember(room: Room, chain: number, base: number): void {
    const bases = known.get(room)
    if (bases === undefined || bases.size >= CHAINS_REMEMBERED) known.set(room, new Map([[chain, base]]))
    else bases.set(chain, base)
  }

  const baseOf = (room: Room): number | undefined => known.get(room)?.get(room.committed.chain)

  async function measure(room: Room): Promise<void> {
    const { chain, seq } = room.committed
    remember(room, chain, Number.NaN)
    const { changes, chains } = await distanceToCheckpoint(db, room.nid, { chain, seq }).catch((error) => {
      known.delete(room)
      throw error
    })
    remember(room, chain, chains > MOST_CHAINS ? Number.NEGATIVE_INFINITY : seq - changes)
    if (isDue(room, baseOf(room))) await write(room)
  }

  async function write(room: Room): Promise<void> {
    const { chain, seq, state } = room.committed
    remember(room, chain, seq)
    await db.tx((tx) => saveCheckpoint(tx, room.nid, { chain, seq }, state))
  }

  return {
    async considerPast(room, point, state) {
      const { changes, chains } = await distanceToCheckpoint(db, room.nid, point)
      if (chains <= MOST_CHAINS && changes < checkpointInterval(state)) return
      await db.tx((tx) => saveCheckpoint(tx, room.nid, point, state))
    },
    consider(room) {
      const { chain, seq } = room.committed
      // The resync still writes members behind this point; a checkpoint would lack them.
      if (room.partialState?.lacksMembers) return
      // There are too few changes for a checkpoint, wherever the last one is.
      if (chain === 0 && seq < LEAST_CHANGES) return
      const base = baseOf(room)
      if (base !== undefined && !isDue(room, base)) return
      const done = base === undefined ? measure(room) : write(room)
      done.catch((error) => {
        // The log is complete without the checkpoint, and the next interval tries again.
        log.warn({ err: error, room: room.id }, 'a state checkpoint could not be written')
      })
    },
  }
}

function isDue({ committed }: Room, base = Number.NaN): boolean {
  return committed.seq - base >= checkpointInterval(committed.state)
}

/** How many changes lie between two checkpoints of such a state. */
export function checkpointInterval(state: StateMap): number {
  return Math.max(LEAST_CHANGES, stateSpan(state) * SHARE_CHANGED)
}
