import { expect, test } from 'vitest'
import { IndexBacklog } from '../../src/domain/search/index-backlog.ts'

const OVERLAP = 10
const MOST = 100

function backlogAt(position: number): IndexBacklog {
  const backlog = new IndexBacklog({ overlap: OVERLAP, most: MOST })
  backlog.position = position
  return backlog
}

function add(backlog: IndexBacklog, from: number, count: number): void {
  for (let nid = from; nid < from + count; nid++) backlog.add(nid)
}

test('what waits is taken in its order, a part at a time', () => {
  const backlog = backlogAt(1_000)
  add(backlog, 1_001, 5)
  expect([backlog.isBehind, backlog.isEmpty, backlog.waiting]).toEqual([false, false, 5])
  expect([backlog.take(3), backlog.take(3), backlog.isEmpty]).toEqual([[1_001, 1_002, 1_003], [1_004, 1_005], true])
})

test('when too much waits, the database is read from a little before the position, which stays where it is', () => {
  const backlog = backlogAt(1_000)
  add(backlog, 1_001, 20 * MOST)
  expect([backlog.isBehind, backlog.reached]).toEqual([true, 990])
  expect(backlog.waiting).toBeLessThanOrEqual(MOST)
  expect(backlog.continueFrom(0)).toBe(990)
  expect([backlog.isBehind, backlog.position]).toEqual([false, 990])
})

test('when too much comes while the database is read, it is read again from a little before that place', () => {
  const backlog = backlogAt(1_000)
  backlog.stepBack()
  let at = backlog.continueFrom(0)
  at = 1_500
  backlog.advance(at)
  expect(backlog.continueFrom(at)).toBe(1_500)
  add(backlog, 2_000, MOST + 1)
  expect(backlog.continueFrom(at)).toBe(1_490)
})

test('news of older events, which the database is not read for, goes on waiting', () => {
  const backlog = backlogAt(1_000)
  add(backlog, 5, 3)
  add(backlog, 1_001, MOST - 2)
  expect([backlog.isBehind, backlog.take(MOST)]).toEqual([true, [5, 6, 7]])
})

test('reading everything again goes before', () => {
  const backlog = backlogAt(1_000)
  backlog.readFrom(0)
  backlog.stepBack()
  expect([backlog.isAnew, backlog.reached]).toEqual([true, 0])
  expect(backlog.continueFrom(700)).toBe(0)
})

test('what was indexed before all is to be read anew is not noted as done', () => {
  const backlog = backlogAt(1_000)
  expect([backlog.positionAfter(1_200), backlog.positionAfter(900)]).toEqual([1_200, 1_000])
  backlog.readFrom(0)
  expect(backlog.positionAfter(1_200)).toBe(0)
  expect(backlog.continueFrom(1_200)).toBe(0)
  expect(backlog.positionAfter(100)).toBe(100)
})
