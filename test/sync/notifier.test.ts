import { expect, it, test } from 'vitest'
import { createEphemeralStream } from '../../src/domain/sync/ephemeral-stream.ts'
import { createNotifier } from '../../src/domain/sync/notifier.ts'

const MINUTE_MS = 60_000

it('nobody waits for a client that went away before the wait began', async () => {
  const notifier = createNotifier()
  const { woken } = notifier.wait({ userNid: 1, roomNids: [1] }, 60_000, AbortSignal.abort())
  await woken
  expect(notifier.waiting()).toBe(0)
})

it('a follower hears that a stream has moved, and nobody wakes', async () => {
  const notifier = createNotifier()
  let moved = 0
  const nothing = () => {}
  notifier.follow({ room: nothing, user: nothing, began: nothing, missed: nothing, moved: () => moved++ })
  const stream = createEphemeralStream({ bytes: Buffer.alloc }, '', notifier.moved)
  const leaving = new AbortController()
  const { woken } = notifier.wait({ userNid: 1, roomNids: [1] }, MINUTE_MS, leaving.signal)
  expect([stream.next(), stream.next(), moved]).toEqual([1, 2, 2])
  expect(notifier.waiting()).toBe(1)
  leaving.abort()
  await woken
})

/** Each holds the processor for a millisecond when it is woken, as a sync does that makes its answer. */
function waiters(notifier: ReturnType<typeof createNotifier>, count: number, roomNid: number, woken: () => void) {
  return Array.from({ length: count }, async (_, index) => {
    const interest = { userNid: roomNid * 10_000 + index, roomNids: [roomNid] }
    await notifier.wait(interest, MINUTE_MS, new AbortController().signal).woken
    await Promise.resolve()
    const begun = performance.now()
    while (performance.now() - begun < 1);
    woken()
  })
}

test('A5: thousands are woken in slices, between which others get their turn', async () => {
  const notifier = createNotifier()
  let woken = 0
  const all = waiters(notifier, 400, 1, () => {
    woken += 1
  })
  notifier.wakeRoom(1)
  const perTurn: number[] = []
  for (let before = 0; woken < 400; before = woken) {
    await new Promise((resolve) => setTimeout(resolve))
    perTurn.push(woken - before)
  }
  await Promise.all(all)
  // By time a slice is five of these, and four more that were begun; a busy machine does fewer.
  expect(Math.max(...perTurn)).toBeLessThan(40)
})

test('A5: who waits in a quiet room is woken before the thousands of another', async () => {
  const notifier = createNotifier()
  let woken = 0
  const many = waiters(notifier, 400, 1, () => {
    woken += 1
  })
  notifier.wakeRoom(1)
  await new Promise(setImmediate)
  let before = Number.NaN
  const [one] = waiters(notifier, 1, 2, () => {
    before = woken
  })
  notifier.wakeRoom(2)
  await one
  expect(before).toBeLessThan(100)
  await Promise.all(many)
  expect(woken).toBe(400)
  expect(notifier.waiting()).toBe(0)
})

test('A5: who waits again while others are woken is not woken once more for the same', async () => {
  const notifier = createNotifier()
  const interest = { userNid: 1, roomNids: [1] }
  const wait = () => notifier.wait(interest, MINUTE_MS, new AbortController().signal)
  const first = wait()
  const others = waiters(notifier, 50, 1, () => {})
  notifier.wakeRoom(1)
  notifier.wakeRoom(1)
  await first.woken
  const second = wait()
  await Promise.all(others)
  expect(notifier.waiting()).toBe(1)
  second.cancel()
})
