import { describe, expect, it } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import { MAX_WISH_CHARS_PER_CONNECTION } from '../../../src/domain/limits/sliding-sync.ts'
import { createSlidingRequests } from '../../../src/domain/sync/sliding/read-request.ts'
import {
  readRecord,
  recordBytes,
  type SentRoom,
  withinWishes,
  writeRecord,
} from '../../../src/domain/sync/sliding/record.ts'
import {
  bothRequired,
  RequiredPart,
  type RequiredState,
  requiredState,
} from '../../../src/domain/sync/sliding/required-state.ts'

/** A wish for state of many characters; those of one number are alike. */
function longWish(number: number, patterns = 100): RequiredState {
  const include = Array.from({ length: patterns }, (_, index) => ({ type: `${number}.${index}`.padEnd(250, 'x') }))
  return requiredState([
    new RequiredPart(
      include.map(({ type }) => ({ type, stateKey: '' })),
      [],
      false,
    ),
  ])
}

const sent = (required: RequiredState): SentRoom => ({ timelineLimit: 1, required, isDirect: false, upTo: undefined })

describe('what is kept of a connection with long wishes', () => {
  it('joins wishes in many ways without writing each of them out', () => {
    const joined = [...Array(50).keys()].map((number) => longWish(number)).reduce(bothRequired)
    expect(joined.parts).toHaveLength(50)
    expect(joined.key.length).toBeLessThan(100)
    expect(bothRequired(longWish(1), longWish(2)).key).toBe(bothRequired(longWish(2), longWish(1)).key)
    expect(bothRequired(longWish(1), longWish(2)).key).not.toBe(bothRequired(longWish(1), longWish(3)).key)
  })

  it('forgets rooms that are not shown when the wishes are too long together, though they are few', () => {
    const rooms = new Map([...Array(50).keys()].map((nid) => [nid, sent(longWish(nid))]))
    const left = withinWishes(rooms, (nid) => nid === 7)
    expect([...left.keys()]).toEqual([7])
    expect(writeRecord({ rooms: left }).length).toBeLessThan(MAX_WISH_CHARS_PER_CONNECTION)
    const alike = new Map([...Array(50).keys()].map((nid) => [nid, sent(longWish(1))]))
    expect(withinWishes(alike, () => false).size).toBe(50)
  })

  it('weighs its wishes too', () => {
    const rooms = new Map([[1, sent(longWish(1))]])
    expect(recordBytes({ rooms })).toBeGreaterThan(25_000)
  })

  it('is the same after it was written and read', () => {
    const wish = bothRequired(longWish(1), longWish(2))
    const read = readRecord(1, writeRecord({ rooms: new Map([[1, sent(wish)]]) })).rooms.get(1)!
    expect(read.required.key).toBe(wish.key)
  })
})

it('ranges that overlap are read as one, and a name in small letters', () => {
  const ranges = [...Array.from({ length: 90 }, () => [0, 5_000]), [8_000, 9_000], [100, 6_000], [6_001, 7_000]]
  const lists = { a: { ranges, filters: { room_name_like: 'ÄBC' } } }
  const requests = createSlidingRequests(new ByteBudget(1_000_000))
  const circumstances = {
    pos: undefined,
    timeoutMs: 0,
    presence: 'online',
    signal: new AbortController().signal,
  } as const
  const { asked } = requests.unstable({ lists }, circumstances)
  expect(asked.lists.get('a')).toMatchObject({
    ranges: [
      [0, 7_000],
      [8_000, 9_000],
    ],
    filters: { nameLike: 'äbc' },
  })
})
