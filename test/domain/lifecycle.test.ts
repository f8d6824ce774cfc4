import { expect, it } from 'vitest'
import { type LifecyclePart, startAll, stopAll, worker } from '../../src/domain/lifecycle.ts'

const failures: unknown[] = []
const log = { error: (...of: unknown[]) => void failures.push(of[0]) }

it('starts in order, and stops the last one first', async () => {
  const seen: string[] = []
  const part = (name: string): LifecyclePart => ({
    name,
    start: async () => void seen.push(`start ${name}`),
    stop: async () => void seen.push(`stop ${name}`),
  })
  const parts = [part('one'), { name: 'neither' }, part('two')]
  await startAll(parts)
  await stopAll(parts, log)
  expect(seen).toEqual(['start one', 'start two', 'stop two', 'stop one'])
})

it('stops the others when one cannot be stopped, and says which', async () => {
  const seen: string[] = []
  const err = new Error('it hangs')
  const parts = [
    { name: 'first', stop: () => seen.push('first') },
    { name: 'second', stop: () => Promise.reject(err) },
    { name: 'third', stop: () => seen.push('third') },
  ]
  await stopAll(parts, log)
  expect(seen).toEqual(['third', 'first'])
  expect(failures).toEqual([{ err, part: 'second' }])
})

it('begins with the start, and ends what was begun', async () => {
  const seen: string[] = []
  const part = worker('loop', () => {
    seen.push('begun')
    return { close: () => seen.push('ended') }
  })
  await stopAll([part], log)
  expect(seen).toEqual([])
  await startAll([part])
  await stopAll([part], log)
  expect(seen).toEqual(['begun', 'ended'])
})
