import { expect, test } from 'vitest'
import { giveBackMemory } from '../../../src/cli/serve/give-back.ts'
import { spareMemory } from '../../../src/cli/serve/spare-memory.ts'
import { waitUntil } from '../../support/wait.ts'

const MIB = 1024 * 1024

test('A4: memory that a load took is given back once it is over; where there is none to be had it is tried less and less often', async () => {
  let given = 0
  let looks = 0
  let held = 0
  let load = 0
  const resident = () => {
    looks += 1
    return 100 * MIB + held + load
  }
  const giveBack = () => {
    given += 1
    load = 0
  }
  const sparing = spareMemory(resident, { everyMs: 2, giveBack, utilization: () => 0 })
  const pass = (count: number) => {
    const from = looks
    return waitUntil(`${count} looks`, () => looks >= from + count)
  }
  try {
    for (const turn of [1, 2]) {
      load = 64 * MIB
      await waitUntil('memory given back', () => given === turn)
    }
    await pass(20)
    expect(given).toBe(2)
    held = 64 * MIB
    await pass(130)
    expect(given).toBeGreaterThanOrEqual(5)
    expect(given).toBeLessThanOrEqual(10)
    const tried = given
    load = 64 * MIB
    held = 0
    await waitUntil('what was let go to be given back', () => given === tried + 1)
  } finally {
    sparing.stop()
  }
})

test('A4: nothing is given back while a load goes on, however light it is', async () => {
  let given = 0
  let looks = 0
  /** Every third check finds the server busy. */
  let isLoaded = true
  const resident = () => (looks === 0 ? 100 : 200) * MIB
  const utilization = () => {
    looks += 1
    return isLoaded && looks % 3 === 0 ? 0.2 : 0.05
  }
  const giveBack = () => {
    given += 1
  }
  const sparing = spareMemory(resident, { everyMs: 2, giveBack, utilization })
  try {
    await waitUntil('many looks', () => looks >= 40)
    expect(given).toBe(0)
    isLoaded = false
    await waitUntil('memory given back', () => given >= 1)
  } finally {
    sparing.stop()
  }
})

test('A4: a large heap is not moved as a whole, which would take as much memory again', () => {
  const pieces = Array.from({ length: 1_200_000 }, (_, index) => [index, `piece ${index}`])
  // Holes everywhere: all of it would have to be moved.
  const kept = pieces.filter((_, index) => index % 4 !== 0)
  pieces.length = 0
  const peakBytes = () => process.resourceUsage().maxRSS * 1024
  const before = peakBytes()
  giveBackMemory()
  expect(peakBytes() - before).toBeLessThan(16 * MIB)
  expect(kept).toHaveLength(900_000)
})
