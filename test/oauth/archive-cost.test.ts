import { afterAll, beforeAll, expect, test } from 'vitest'
import type { UserId } from '../../src/core/ids.ts'
import { type ArchivePart, createArchiveContent } from '../../src/domain/oauth/archive/archive-content.ts'
import type { Database, Reader } from '../../src/store/db/db.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const ROOMS = 200

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
  await database.db.tx((tx) =>
    tx.query(
      `WITH made AS (
         INSERT INTO room (room_nid, room_id, room_version, head_version, extremities, depth, last_pos, last_nid, notifiable, state_chain, state_seq)
         SELECT n, '!r' || n, '11', 0, '{}', 0, 0, 0, 0, 0, 0 FROM generate_series(1, ${ROOMS}) AS n RETURNING room_nid
       ) INSERT INTO room_member (user_nid, room_nid, membership, event_nid) SELECT 7, room_nid, 'join', 0 FROM made`,
    ),
  )
})
afterAll(() => database.drop())

test('the messages of a person in many rooms are collected with a few rows read for each room', async () => {
  const { db } = database
  let rows = 0
  const query: Reader['query'] = async (text, values) => {
    const found = await db.query<never>(text, values)
    rows += found.length
    return found
  }
  const partOf = createArchiveContent({
    db: { ...db, query } as Database,
    clock: Date,
    openMedia: async () => {
      throw new Error('there are no files')
    },
  })
  const owner = { userNid: 7, userId: '@many:localhost' as UserId }
  let part: ArchivePart | null = { kind: 'events', room: 0, roomNid: 0, after: Number.MIN_SAFE_INTEGER, file: 0 }
  let steps = 0
  while (part !== null && part.kind === 'events') {
    part = (await partOf(owner, part)).next
    steps++
  }
  expect(part).toEqual({ kind: 'media', from: 0 })
  expect(steps).toBe(ROOMS + 1)
  expect(rows).toBeLessThanOrEqual(3 * ROOMS)
})
