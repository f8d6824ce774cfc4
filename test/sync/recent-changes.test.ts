import { expect, it } from 'vitest'
import { JournaledChanges } from '../../src/domain/sync/recent-changes.ts'

it('says which keys changed since a count, as far as it remembers', () => {
  const changes = new JournaledChanges(10, 4)
  const begun = changes.count
  expect(changes.changedSince(begun)).toEqual(new Set())
  for (const key of [7, 8, 7]) changes.record(key, 20)
  expect(changes.changedSince(begun)).toEqual(new Set([7, 8]))
  changes.record(9, 21)
  expect(changes.changedSince(begun)).toEqual(new Set([7, 8, 9]))
  const later = changes.count - 1
  changes.record(6, 22)
  expect(changes.changedSince(begun)).toBeUndefined()
  expect(changes.changedSince(later)).toEqual(new Set([9, 6]))
})

it('knows nothing of what was before changes were missed', () => {
  const changes = new JournaledChanges(10, 4)
  const { count } = changes
  changes.forget(30)
  changes.record(1, 31)
  expect(changes.changedSince(count)).toEqual(new Set([1]))
  const before = changes.count
  changes.record(2, 32)
  changes.forget(40)
  expect(changes.changedSince(before)).toBeUndefined()
})
