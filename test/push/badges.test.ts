import { expect, it } from 'vitest'
import { createBadges } from '../../src/domain/pushing/badges.ts'

const COUNTED = { notification_count: 3, highlight_count: 0 }

it('a badge shows the last count of a room, also if one that began before ends after it', async () => {
  const memberships = new Map([1, 2].map((nid) => [nid, { membership: 'join', eventNid: nid, changedAt: 1 } as const]))
  const answers: (() => void)[] = []
  const badges = createBadges({
    events: { load: async () => new Map() },
    ignoredUsers: { of: () => undefined },
    userRooms: { of: async () => memberships },
    unreadRooms: {
      of: (_user: number, nids: readonly number[]) =>
        new Promise((resolve) => answers.push(() => resolve(new Map(nids.map((nid) => [nid, COUNTED]))))),
      now: () => 0,
    },
  } as unknown as Parameters<typeof createBadges>[0])
  const first = badges.of(1)
  await expect.poll(() => answers.length).toBe(1)
  // The user reads all of one room meanwhile.
  badges.changed(1, 1)
  expect(badges.of(1)).toBe(0)
  answers[0]!()
  expect(await first).toBe(3)
  expect(badges.of(1)).toBe(3)
})
