import { expect, it } from 'vitest'
import { createNotifier } from '../../src/domain/sync/notifier.ts'

it('nobody waits for a client that went away before the wait began', async () => {
  const notifier = createNotifier()
  const { woken } = notifier.wait({ userNid: 1, roomNids: [1] }, 60_000, AbortSignal.abort())
  await woken
  expect(notifier.waiting()).toBe(0)
}, 2_000)
