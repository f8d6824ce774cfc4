import { beforeEach, expect, it } from 'vitest'
import { ByteBudget } from '../../src/core/byte-budget.ts'
import { createLazyMembers, type LazyMembers } from '../../src/domain/sync/lazy-members.ts'

const SENDERS = 10_000
const AT_ONCE = 100

let budget: ByteBudget
let lazy: LazyMembers<string>
beforeEach(() => {
  budget = new ByteBudget(64 * 1024 * 1024)
  lazy = createLazyMembers<string>(budget)
})

/** Answers that each show the next so many senders, and those before them again. Returns who was sent. */
function answer(client: string, at: number, senders: readonly number[]): string[] {
  const [from, to] = [at === 0 ? undefined : [at], [at + 1]]
  const sent = lazy.of(client, 1, from)
  const needed = new Map(senders.map((nid) => [`@u${nid}:x`, nid] as const))
  for (const userId of needed.keys()) if (sent.nidOf(userId) !== undefined) needed.delete(userId)
  lazy.record(client, 1, from, needed, to)
  return [...needed.keys()]
}

it('ten thousand senders take no more memory than some of them, and each is sent before it is held to be known', () => {
  const has = new Set<string>()
  const bytes: number[] = []
  for (let at = 0; at < SENDERS / AT_ONCE; at++) {
    const senders = Array.from({ length: AT_ONCE }, (_, place) => at * AT_ONCE + place)
    for (const userId of answer('a', at, senders)) has.add(userId)
    for (const nid of senders) expect(has).toContain(`@u${nid}:x`)
    bytes.push(budget.bytes)
  }
  expect(has.size).toBe(SENDERS)
  expect(Math.max(...bytes)).toBeLessThan(512 * 1024)
})

it('clients that never come twice are forgotten, the oldest first, within the budget', () => {
  for (let client = 0; client < 20_000; client++)
    answer(
      `c${client}`,
      0,
      Array.from({ length: 50 }, (_, nid) => nid),
    )
  expect(budget.bytes).toBeLessThanOrEqual(64 * 1024 * 1024)
  expect(lazy.of('c19999', 1, [1]).size).toBe(50)
  expect(lazy.of('c0', 1, [1]).size).toBe(0)
})
