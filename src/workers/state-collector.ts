import { groupBy } from '../core/group-by.ts'
import type { Database } from '../store/db/db.ts'
import {
  type ChainName,
  findGivenUp,
  giveUpChains,
  removeChain,
  surveyChains,
  unusedChains,
} from '../store/events/state-collection.ts'

/** Removes state chains that no event needs any more. */
export interface StateCollector {
  /** Checks the next chains and removes unused ones, until `isOver`. Gives the number of removed rows. */
  round(isOver: () => boolean): Promise<number>
}

const CHAINS_AT_ONCE = 500
const SLICES_PER_ROUND = 40
const ROWS_AT_ONCE = 2_000
const BEYOND_ALL: ChainName = { room_nid: Number.MAX_SAFE_INTEGER, chain: 0 }

export function createStateCollector(db: Database): StateCollector {
  /** The end of the last round, where the next one continues. */
  let before = BEYOND_ALL

  /** False at the end of all chains. */
  async function giveUpNext(): Promise<boolean> {
    const uses = await surveyChains(db, before, CHAINS_AT_ONCE)
    for (const [roomNid, unused] of groupBy(unusedChains(uses), ({ room_nid }) => room_nid)) {
      const chains = unused.map(({ chain }) => chain)
      await db.tx((tx) => giveUpChains(tx, roomNid, chains))
    }
    const hasMore = uses.length === CHAINS_AT_ONCE
    before = hasMore ? uses.at(-1)! : BEYOND_ALL
    return hasMore
  }

  return {
    async round(isOver) {
      for (let slice = 0; slice < SLICES_PER_ROUND && !isOver(); slice++) if (!(await giveUpNext())) break
      let total = 0
      while (!isOver()) {
        const chain = await findGivenUp(db)
        if (chain === undefined) break
        total += await db.tx((tx) => removeChain(tx, chain, ROWS_AT_ONCE))
      }
      return total
    },
  }
}
