import { describe, expect, it } from 'vitest'
import { type HistoryVisibility, historyVisibilityOf, type Membership } from '../../src/core/event/content.ts'
import { canSeeEvent } from '../../src/core/visibility.ts'

const MEMBERSHIPS: Membership[] = ['join', 'invite', 'knock', 'leave', 'ban']

/** Under each visibility: the memberships at the event with which it is seen, without and with a join since. */
const TABLE: [visibility: HistoryVisibility, seenAnyway: Membership[], seenAfterJoining: Membership[]][] = [
  ['world_readable', MEMBERSHIPS, MEMBERSHIPS],
  ['shared', ['join'], MEMBERSHIPS],
  ['invited', ['join', 'invite'], ['join', 'invite']],
  ['joined', ['join'], ['join']],
]

const CASES = TABLE.flatMap(([visibility, anyway, after]) =>
  MEMBERSHIPS.flatMap((membership) =>
    [false, true].map((joinedSince) => ({
      visibility,
      membership,
      joinedSince,
      seen: (joinedSince ? after : anyway).includes(membership),
    })),
  ),
)

describe('history visibility (client-server API, server behaviour)', () => {
  it.each(CASES)('$visibility, $membership at the event, joined since: $joinedSince -> $seen', (row) => {
    expect(canSeeEvent(row, row.joinedSince)).toBe(row.seen)
  })

  it('has a case for every combination', () => {
    expect(CASES).toHaveLength(4 * 5 * 2)
  })

  const closed = { visibility: 'joined', membership: 'leave' } as const
  it.each([
    ['their own join', closed, { ...closed, membership: 'join' }],
    ['their own leave', { ...closed, membership: 'join' }, closed],
    ['history closing', { ...closed, visibility: 'world_readable' }, closed],
    ['history opening', closed, { ...closed, visibility: 'world_readable' }],
  ] as const)('%s is seen from the side that lets it be seen', (_name, before, after) => {
    expect(canSeeEvent(before, false, after)).toBe(true)
    expect(canSeeEvent(closed, false)).toBe(false)
  })

  it.each([undefined, {}, { history_visibility: 'secret' }, { history_visibility: 7 }])(
    '%j reads as shared',
    (content) => {
      expect(historyVisibilityOf(content && { content })).toBe('shared')
    },
  )
})
