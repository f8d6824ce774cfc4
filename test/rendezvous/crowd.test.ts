import { randomBytes } from 'node:crypto'
import { beforeEach, expect, it } from 'vitest'
import { MAX_RENDEZVOUS, MAX_RENDEZVOUS_PER_ADDRESS, RENDEZVOUS_MS } from '../../src/domain/limits/rendezvous.ts'
import { createRendezvous, type Rendezvous } from '../../src/domain/rendezvous/rendezvous.ts'

let now = 0
let rendezvous: Rendezvous
beforeEach(() => {
  now = 1_000_000
  rendezvous = createRendezvous({ clock: { now: () => now }, random: { bytes: randomBytes } })
})

/** Begins one a millisecond later than the one before. */
function begin(address: string): string {
  now += 1
  return rendezvous.create('hello', address).id
}

const beginMany = (count: number, addressOf: (n: number) => string): string[] =>
  Array.from({ length: count }, (_, n) => begin(addressOf(n)))

function isThere(id: string): boolean {
  try {
    return rendezvous.read(id).data === 'hello'
  } catch {
    return false
  }
}

const missing = (ids: readonly string[]): number[] => [...ids.keys()].filter((n) => !isThere(ids[n]!))

it('of a crowd, the network that has most gives up its oldest session to a newcomer', () => {
  const few = beginMany(3, () => '192.0.2.1')
  const single = begin('2001:db8:1::1')
  // These count as one network.
  const many = beginMany(5, (n) => `2001:db8:2::${n}`)
  const others = beginMany(MAX_RENDEZVOUS - 9, (n) => `10.0.${n >> 8}.${n & 255}`)
  const newcomers = [begin('198.51.100.1'), begin('198.51.100.2')]
  expect(missing(many)).toEqual([0, 1])
  expect(missing(few)).toEqual([])
  // Now both have three: the oldest of either ends.
  const next = begin('198.51.100.3')
  expect([missing(few), missing(many)]).toEqual([[0], [0, 1]])
  expect(missing([single, ...others, ...newcomers, next])).toEqual([])
})

it('of a crowd, a newcomer whose network has most takes the place of its own oldest session', () => {
  const early = beginMany(2, () => '192.0.2.1')
  const own = beginMany(2, () => '192.0.2.2')
  const others = beginMany(MAX_RENDEZVOUS - 4, (n) => `10.0.${n >> 8}.${n & 255}`)
  const next = begin('192.0.2.2')
  expect([missing(early), missing(own), missing(others), isThere(next)]).toEqual([[], [0], [], true])
})

it('one network keeps nobody out, and loses to each newcomer until it has no more than others', () => {
  const networks = MAX_RENDEZVOUS / MAX_RENDEZVOUS_PER_ADDRESS
  const flood = beginMany(MAX_RENDEZVOUS, (n) => `10.0.0.${n % networks}`)
  expect(() => begin('10.0.0.1')).toThrow('from your network')
  expect(missing(flood)).toEqual([])
  const people = beginMany(MAX_RENDEZVOUS - networks, (n) => `172.16.${n >> 8}.${n & 255}`)
  expect(missing(people)).toEqual([])
  expect(missing(flood)).toHaveLength(MAX_RENDEZVOUS - networks)
})

it('what was ended or has expired counts no more', () => {
  const ids = beginMany(MAX_RENDEZVOUS, (n) => `10.0.${n >> 8}.${n & 255}`)
  rendezvous.end(ids[7]!)
  begin('192.0.2.1')
  expect(missing(ids)).toEqual([7])
  now += RENDEZVOUS_MS
  const late = beginMany(MAX_RENDEZVOUS, (n) => `172.16.${n >> 8}.${n & 255}`)
  expect(missing(late)).toEqual([])
})
