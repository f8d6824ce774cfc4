import { expect, test } from 'vitest'
import { optimiseOnceWorking } from '../../../src/cli/serve/optimising.ts'
import { waitUntil } from '../../support/wait.ts'

test('A3: the engine optimises late at first, and sooner once the server has worked for a while', async () => {
  const budgets: number[] = []
  const setBudget = (bytes: number) => void budgets.push(bytes)
  const optimising = optimiseOnceWorking({ workedMs: 50, everyMs: 5, setBudget })
  expect(budgets).toHaveLength(1)
  await waitUntil('the second budget', () => {
    const until = performance.now() + 20
    while (performance.now() < until);
    return budgets.length > 1
  })
  expect(budgets).toHaveLength(2)
  expect(budgets[1]).toBeLessThan(budgets[0]!)
  optimising.stop()
})

test('A3: nothing changes for a server that does nothing', async () => {
  const budgets: number[] = []
  const setBudget = (bytes: number) => void budgets.push(bytes)
  const before = performance.eventLoopUtilization().idle
  const optimising = optimiseOnceWorking({ workedMs: Number.POSITIVE_INFINITY, everyMs: 1, setBudget })
  await waitUntil('a few looks', () => performance.eventLoopUtilization().idle > before + 20)
  optimising.stop()
  expect(budgets).toHaveLength(1)
})
