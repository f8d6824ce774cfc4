import { setImmediate } from 'node:timers/promises'

/**
 * Spreads work over turns of the event loop: so many calls resolve in each, so that what is done by the hundred leaves room for
 * everything else in between.
 */
export function createLoopTurns(perTurn = 1): () => Promise<void> {
  let turn: Promise<void> = Promise.resolve()
  let left = 0
  return () => {
    if (left === 0) {
      left = perTurn
      turn = turn.then(() => setImmediate())
    }
    left--
    return turn
  }
}
