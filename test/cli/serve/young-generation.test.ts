import { getHeapSpaceStatistics } from 'node:v8'
import { expect, test } from 'vitest'
import { collectNewObjects } from '../../../src/cli/serve/give-back.ts'
import {
  collectWhileResting,
  releaseOnceSettled,
  spareWhileBodiesArrive,
} from '../../../src/cli/serve/young-generation.ts'
import { waitUntil } from '../../support/wait.ts'

/** What is called, in order. */
function recorder() {
  const calls: string[] = []
  return { calls, giveBack: () => void calls.push('give back'), release: () => void calls.push('release') }
}

test('A3: what a start leaves behind is given back once it is over, and then the space for new objects may grow', async () => {
  const { calls, giveBack, release } = recorder()
  const settling = releaseOnceSettled({ settledMs: 40, everyMs: 5, giveBack, release })
  await waitUntil('the release', () => calls.includes('release'))
  expect(calls).toEqual(['give back', 'release'])
  settling.stop()
})

test('A3: a server that has clients at once is not held up for that', async () => {
  const { calls, giveBack, release } = recorder()
  const settling = releaseOnceSettled({ settledMs: 60_000, everyMs: 5, giveBack, release })
  await waitUntil('the release', () => {
    const until = performance.now() + 20
    while (performance.now() < until);
    return calls.includes('release')
  })
  expect(calls).toEqual(['release'])
  settling.stop()
})

test('A1: while many bodies come slowly the space for new objects does not grow, and free pages go back', async () => {
  const { calls, giveBack, release } = recorder()
  let bytes = 1_000_000
  let looks = 0
  const read = () => {
    looks += 1
    return bytes
  }
  const looked = (times: number) => {
    const until = looks + times
    return waitUntil('looks', () => looks >= until)
  }
  const sparing = spareWhileBodiesArrive(read, { everyMs: 5, giveBack, release, hold: () => void calls.push('hold') })
  await looked(3)
  expect(calls).toEqual([])
  bytes = 16_000_000
  await waitUntil('pages to be given back twice', () => calls.length >= 3)
  bytes = 0
  await waitUntil('the release', () => calls.includes('release'))
  await looked(3)
  sparing.stop()
  expect([calls[0], calls.at(-1)]).toEqual(['hold', 'release'])
  expect(new Set(calls.slice(1, -1))).toEqual(new Set(['give back']))
})

test('A3: new objects are collected while the server rests, if there are many, and not while it works', async () => {
  let bytes = 1_000_000
  let looks = 0
  let collected = 0
  const newBytes = () => {
    looks += 1
    return bytes
  }
  const collect = () => {
    collected += 1
    bytes = 0
  }
  const resting = collectWhileResting({ everyMs: 5, newBytes, collect })
  await waitUntil('a few looks', () => looks > 2)
  expect(collected).toBe(0)
  bytes = 8_000_000
  await waitUntil('a collection', () => collected > 0)
  await waitUntil('the end of the work', () => {
    bytes = 8_000_000
    collected = 0
    const until = performance.now() + 50
    while (performance.now() < until);
    return true
  })
  await waitUntil('the next collection', () => collected > 0)
  resting.stop()
})

test('A3: the engine collects its new objects when it is told to', () => {
  const newBytes = () => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')!.space_used_size
  const garbage: object[] = []
  collectNewObjects()
  for (let index = 0; index < 5_000; index++) garbage.push({ index })
  const before = newBytes()
  garbage.length = 0
  collectNewObjects()
  expect(newBytes()).toBeLessThan(before / 2)
})
