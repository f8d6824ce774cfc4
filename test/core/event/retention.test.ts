import { describe, expect, test } from 'vitest'
import { lifetimeOf, retentionOf } from '../../../src/core/event/retention.ts'

const said = (content: object) => retentionOf({ content: content as never })
const DAY = 86_400_000
const bounds = { byDefault: undefined, shortest: DAY, longest: 30 * DAY }

describe('how long a room wants messages to be kept', () => {
  test.each<[object, object]>([
    [{ max_lifetime: 5 }, { min: undefined, max: 5 }],
    [
      { min_lifetime: 1, max_lifetime: 1 },
      { min: 1, max: 1 },
    ],
    [
      { max_lifetime: null, min_lifetime: 3 },
      { min: 3, max: undefined },
    ],
    [
      { min_lifetime: 2, max_lifetime: 1 },
      { min: undefined, max: undefined },
    ],
    ...[-1, 1.5, '5', {}, [], true, 2 ** 53, Number.NaN].map((max_lifetime): [object, object] => [
      { max_lifetime },
      { min: undefined, max: undefined },
    ]),
  ])('%o is %o', (content, retention) => {
    expect(said(content)).toEqual(retention)
  })

  test('counts within what the server allows', () => {
    const days = (content: object, more: object = {}) => {
      const lifetime = lifetimeOf(said(content), { ...bounds, ...more })
      return lifetime === undefined ? undefined : lifetime / DAY
    }
    expect(days({})).toBeUndefined()
    expect(days({ min_lifetime: 5 * DAY })).toBeUndefined()
    expect(days({ max_lifetime: 7 * DAY })).toBe(7)
    expect(days({ max_lifetime: 0 })).toBe(1)
    expect(days({ max_lifetime: 365 * DAY })).toBe(30)
    expect(days({}, { byDefault: 90 * DAY })).toBe(90)
    expect(days({ min_lifetime: 10 * DAY }, { byDefault: 2 * DAY })).toBe(10)
    expect(days({ min_lifetime: 365 * DAY }, { byDefault: 2 * DAY })).toBe(30)
    expect(days({ max_lifetime: 2 * DAY }, { byDefault: 90 * DAY })).toBe(2)
  })
})
