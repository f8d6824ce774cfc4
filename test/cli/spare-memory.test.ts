import { expect, test } from 'vitest'
import { spareMemory } from '../../src/cli/spare-memory.ts'
import { waitUntil } from '../support/wait.ts'

const MIB = 1024 * 1024

test('A4: memory that a load took is looked for once it is over, and not again before the next', async () => {
  let collected = 0
  let bytes = 100 * MIB
  const sparing = spareMemory({
    everyMs: 5,
    taken: () => bytes,
    collect: () => {
      collected += 1
      bytes -= 10 * MIB
    },
  })
  try {
    for (const load of [1, 2]) {
      bytes += 64 * MIB
      await waitUntil('a collection', () => collected >= load)
    }
    await waitUntil('some more looks', () => new Promise<boolean>((resolve) => setTimeout(() => resolve(true), 50)))
    expect(collected).toBe(2)
  } finally {
    sparing.stop()
  }
})
