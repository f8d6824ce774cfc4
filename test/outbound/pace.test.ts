import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createPace } from '../../src/outbound/pace.ts'

describe('the pace', () => {
  test.each([1, 8])(
    'lets %i begin in each turn of the event loop, in the order in which they came',
    async (perTurn) => {
      const nextTurn = createPace(perTurn)
      const begun: number[] = []
      for (let n = 0; n < 20; n++) void nextTurn().then(() => begun.push(n))
      for (let before = 0; before < 20; before = begun.length) {
        await setImmediate()
        expect(begun.length - before).toBeLessThanOrEqual(perTurn)
      }
      expect(begun).toEqual(Array.from({ length: 20 }, (_, n) => n))
    },
  )
})
