import { expect, test } from 'vitest'
import { spareMemory } from '../../src/cli/spare-memory.ts'
import { waitUntil } from '../support/wait.ts'

test('A4: memory that a load took is looked for once it is over, and not again before the next', async () => {
  let collected = 0
  const sparing = spareMemory({
    everyMs: 5,
    collect: () => {
      collected += 1
    },
  })
  const held: Buffer[] = []
  try {
    for (const load of [1, 2]) {
      for (let index = 0; index < 64; index++) held.push(Buffer.alloc(1024 * 1024, index))
      await waitUntil('a collection', () => collected >= load)
    }
    expect(held.length).toBe(128)
    expect(collected).toBeLessThan(10)
  } finally {
    sparing.stop()
  }
})
