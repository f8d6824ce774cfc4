import { expect, test } from 'vitest'
import { positionOf, ReplicaProgress } from '../../../src/store/db/replica-progress.ts'

test('a place in the log is a number', () => {
  expect(positionOf('0/0')).toBe(0n)
  expect(positionOf('16/B374D848')).toBe(0x16_b374_d848n)
  expect(positionOf('1/0') > positionOf('0/FFFFFFFF')).toBe(true)
})

test('a replica that is always a little behind counts as near by the newest mark that it has passed', () => {
  const progress = new ReplicaProgress(5_000)
  for (let at = 0; at <= 20_000; at += 500) {
    progress.mark({ at, position: BigInt(at) })
    progress.reached(BigInt(at - 1))
    expect(progress.has(BigInt(at))).toBe(false)
    if (at >= 500) expect(progress.lagMs(at)).toBe(500)
  }
  expect([progress.isNear(20_000), progress.isFar(20_000)]).toEqual([true, false])
})

test('it is far only after the time that it may be behind; at the beginning it is neither', () => {
  const progress = new ReplicaProgress(5_000)
  expect([progress.isNear(0), progress.isFar(0)]).toEqual([false, false])
  for (let at = 0; at <= 60_000; at += 500) progress.mark({ at, position: BigInt(at + 1) })
  expect([progress.isNear(5_000), progress.isFar(60_000)]).toEqual([false, true])
  progress.reached(60_001n)
  expect([progress.isNear(60_000), progress.isFar(60_000), progress.lagMs(60_000)]).toEqual([true, false, 0])
  // Made anew from an older copy.
  progress.reached(10n)
  expect(progress.has(60_001n)).toBe(false)
  expect([progress.isNear(65_001), progress.isFar(65_001)]).toEqual([false, true])
})
