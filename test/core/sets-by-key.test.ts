import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SetsByKey } from '../../src/core/sets-by-key.ts'

const members = [{}, {}, {}]

test('holds what a map of sets would hold, in the same order', () => {
  const step = fc.record({ isAdd: fc.boolean(), key: fc.nat(2), member: fc.nat(2) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const sets = new SetsByKey<number, object>()
      const model = new Map<number, Set<object>>()
      for (const { isAdd, key, member: place } of steps) {
        const member = members[place]!
        const set = model.get(key) ?? new Set()
        model.set(key, set)
        if (isAdd) {
          sets.add(key, member)
          set.add(member)
        } else {
          sets.delete(key, member)
          set.delete(member)
        }
        for (const [one, held] of model) {
          expect(sets.of(one)).toEqual([...held])
          expect(sets.of(one).every((each, index) => each === [...held][index])).toBe(true)
          expect(sets.has(one)).toBe(held.size > 0)
        }
      }
    }),
  )
})
