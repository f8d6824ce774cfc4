import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LookupTable } from '../../../src/domain/identity/lookup-table.ts'

const at = (table: LookupTable, hash: Uint8Array): LookupTable => {
  table.key.set(hash)
  return table
}

/** Hashes that share all but one byte, so that they meet in one part and mostly in one slot. */
const hashOf = (place: number, value: number): Uint8Array => {
  const hash = new Uint8Array(32)
  hash[place] = value
  return hash
}

const Step = fc.record({
  place: fc.integer({ min: 0, max: 31 }),
  value: fc.integer({ min: 0, max: 255 }),
  user: fc.option(fc.string({ unit: 'grapheme', maxLength: 40 }), { nil: undefined }),
})

it('holds what a map would hold, whichever bytes hashes differ in', () => {
  fc.assert(
    fc.property(fc.array(Step, { maxLength: 300 }), (steps) => {
      const table = new LookupTable()
      const map = new Map<string, string>()
      for (const { place, value, user } of steps) {
        const hash = hashOf(place, value)
        if (user === undefined) {
          at(table, hash).delete()
          map.delete(hash.join())
        } else {
          at(table, hash).set(Buffer.from(user))
          map.set(hash.join(), user)
        }
      }
      for (const { place, value } of steps) {
        const hash = hashOf(place, value)
        expect(at(table, hash).find()).toBe(map.get(hash.join()))
      }
    }),
    { numRuns: 200 },
  )
})

it('50,000 in one part, which grows all the time, and names past one chunk', () => {
  const table = new LookupTable()
  const hash = new Uint8Array(32)
  const words = new Uint32Array(hash.buffer)
  for (let n = 0; n < 50_000; n++) {
    words[1] = n
    at(table, hash).set(Buffer.from(`@${'user'.repeat(8)}${n}:hs.test`))
  }
  expect(table.size).toBe(50_000)
  for (let n = 0; n < 50_100; n += 50) {
    words[1] = n
    expect(at(table, hash).find()).toBe(n < 50_000 ? `@${'user'.repeat(8)}${n}:hs.test` : undefined)
  }
})
