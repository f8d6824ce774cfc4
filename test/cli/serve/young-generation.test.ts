import { expect, test } from 'vitest'
import { releaseOnceSettled } from '../../../src/cli/serve/young-generation.ts'
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
