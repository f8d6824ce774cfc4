import { expect, it } from 'vitest'
import { Resting } from '../../src/domain/pushing/resting.ts'

it('what rests is due in order, at the time that was said last', () => {
  const resting = new Resting<string>()
  resting.add('a', 30)
  resting.add('b', 10)
  resting.add('c', 20)
  resting.add('a', 5)
  resting.add('b', 40)
  resting.delete('c')
  expect([resting.size, resting.nextAt]).toEqual([2, 5])
  expect(resting.takeDue(4)).toEqual([])
  expect(resting.takeDue(39)).toEqual(['a'])
  expect(resting.takeDue(40)).toEqual(['b'])
  expect([resting.size, resting.nextAt, resting.takeDue(1_000)]).toEqual([0, undefined, []])
})

it('what is taken out and added again is due once', () => {
  const resting = new Resting<string>()
  for (let times = 0; times < 3; times++) {
    resting.add('a', 10)
    resting.delete('a')
  }
  resting.add('a', 10)
  expect(resting.takeDue(10)).toEqual(['a'])
  resting.add('a', 7)
  resting.add('b', 100)
  expect(resting.takeAll()).toEqual(['a', 'b'])
  expect([resting.size, resting.nextAt, resting.takeDue(1_000)]).toEqual([0, undefined, []])
})

it('what is put off again and again leaves nothing behind for long', () => {
  const resting = new Resting<number>()
  for (let dueAt = 5_000; dueAt > 1_000; dueAt--) resting.add(1, dueAt)
  expect(resting.nextAt).toBe(1_001)
  expect(resting.takeDue(1_001)).toEqual([1])
  for (let dueAt = 2_000; dueAt < 12_000; dueAt++) resting.add(1, dueAt)
  // All of these were dropped meanwhile, but for the last ones.
  expect(resting.nextAt).toBeGreaterThan(10_000)
  expect(resting.takeDue(11_998)).toEqual([])
  expect(resting.takeDue(11_999)).toEqual([1])
})
