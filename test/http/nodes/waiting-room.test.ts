import { expect, it } from 'vitest'
import { createWaitingRoom, pauseMs } from '../../../src/http/nodes/waiting-room.ts'

it('few try again soon, and many so seldom that they leave room for the node that is about to serve', () => {
  expect(pauseMs(1)).toBe(50)
  expect(pauseMs(200)).toBe(50)
  for (const count of [500, 2_000, 5_000]) expect(count / pauseMs(count)).toBeLessThanOrEqual(5)
  expect(pauseMs(1_000_000)).toBe(1_000)
})

it('all try again at once when another node serves', async () => {
  const room = createWaitingRoom()
  const begun = performance.now()
  let left = 0
  const all = Array.from({ length: 20_000 }, () => room.wait().then(() => left++))
  room.wake()
  await Promise.all(all.slice(10_000))
  // The last ones would wait for a second each.
  expect(performance.now() - begun).toBeLessThan(1_000)
  await Promise.all(all)
  expect(left).toBe(20_000)
})
