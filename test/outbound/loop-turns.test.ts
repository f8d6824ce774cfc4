import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createLoopTurns } from '../../src/outbound/loop-turns.ts'

describe('turns of the event loop', () => {
  test.each([1, 8])('lets %i begin in each, in the order in which they came', async (perTurn) => {
    const nextTurn = createLoopTurns(perTurn)
    const begun: number[] = []
    for (let n = 0; n < 20; n++) void nextTurn().then(() => begun.push(n))
    for (let before = 0; before < 20; before = begun.length) {
      await setImmediate()
      expect(begun.length - before).toBeLessThanOrEqual(perTurn)
    }
    expect(begun).toEqual(Array.from({ length: 20 }, (_, n) => n))
  })
})
