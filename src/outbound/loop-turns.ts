import { setImmediate } from 'node:timers/promises'

/**
 * Spreads work over turns of the event loop: `perTurn` calls resolve in each turn, so that hundreds of calls do not hold up everything
 * else.
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
