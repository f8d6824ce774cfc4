import { expect, it } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import { MAX_REPLIES_READ } from '../../../src/domain/limits/relations.ts'
import { createSharedBundles } from '../../../src/domain/rooms/read/shared-bundles.ts'
import type { EventCache } from '../../../src/domain/rooms/room/event-cache.ts'
import { Repliers } from '../../../src/domain/rooms/room/repliers.ts'
import type { Room } from '../../../src/domain/rooms/room/room.ts'
import type { Reader } from '../../../src/store/db/db.ts'

it('everybody is told of their own part in a long thread, however many ask at once', async () => {
  const [rootNid, rootId] = [7, '$root']
  const thread = { kind: 'm.thread', target_id: rootId, child_nid: 8, replies: MAX_REPLIES_READ + 1 }
  const root = {
    nid: rootNid,
    id: rootId,
    sender: '@root:here',
    aggregates: { rows: [thread], repliers: new Repliers() },
  }
  const answers: (() => void)[] = []
  // All asked for what the database then answers in one piece.
  const query = () => new Promise((resolve) => void answers.push(() => resolve([{ root_id: rootId }])))
  const bundles = createSharedBundles({
    db: { query } as unknown as Reader,
    events: { get: () => root, grown() {} } as unknown as EventCache,
    access: { membersSee: () => true },
  })
  const readers = Array.from({ length: 200 }, (_, index) => `@reader-${index}:here` as UserId)
  const asking = readers.map((userId) => bundles.partsOf({ userId }, { nid: 1 } as Room, [rootNid]))
  for (const answer of answers) answer()
  for (const parts of await Promise.all(asking)) expect(parts).toEqual(new Set([rootNid]))
})
