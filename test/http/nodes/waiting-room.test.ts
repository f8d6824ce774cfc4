import { afterEach, expect, it, vi } from 'vitest'
import { createWaitingRoom, pauseMs } from '../../../src/http/nodes/waiting-room.ts'

afterEach(() => void vi.useRealTimers())

it('few try again soon, and many so seldom that they leave room for the node that is about to serve', () => {
  expect(pauseMs(1)).toBe(50)
  expect(pauseMs(200)).toBe(50)
  for (const count of [500, 2_000, 5_000]) expect(count / pauseMs(count)).toBeLessThanOrEqual(5)
  expect(pauseMs(1_000_000)).toBe(1_000)
})

it('all try again at once when another node serves', async () => {
  // No time passes.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const room = createWaitingRoom()
  const all = Array.from({ length: 20_000 }, () => room.wait())
  room.wake()
  await Promise.all(all)
  expect(vi.getTimerCount()).toBe(0)
})
