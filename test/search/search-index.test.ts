import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { MAX_UNINDEXED_EVENTS, SEARCH_OVERLAP } from '../../src/domain/limits/search.ts'
import type { EventCache } from '../../src/domain/rooms/room/event-cache.ts'
import type { RoomEvent } from '../../src/domain/rooms/room/room-event.ts'
import { createSearchIndex, type SearchIndex } from '../../src/domain/search/search-index.ts'
import { createSearchSignals, type SearchSignals } from '../../src/domain/search/search-signals.ts'
import { setSearchPosition } from '../../src/store/events/search.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const POSITION = 1_000_000
const { config } = loadConfig({ values: { server_name: 'here.test' }, directory: '.' })

let database: TestDatabase
let searchSignals: SearchSignals
let index: SearchIndex
let newest = POSITION

beforeAll(async () => {
  database = await createTestDatabase()
  const { db } = database
  await db.tx((tx) => setSearchPosition(tx, POSITION))
  searchSignals = createSearchSignals()
  index = createSearchIndex({
    base: { config, db, log: pino({ level: 'silent' }) },
    roomBase: { events: {} as EventCache, searchSignals },
    rooms: { position: () => newest },
  })
  index.setPaused(true)
  await index.start?.()
})
afterAll(async () => {
  await index.stop?.()
  await database.drop()
})

const message = (nid: number) => ({ nid, type: 'm.room.message', isState: false }) as RoomEvent

test('more messages than may wait are read from the database later, from where the index was', () => {
  const commits = 4 * MAX_UNINDEXED_EVENTS
  for (let count = 0; count < commits; count++) searchSignals.committed([message(++newest)], [], [])
  expect(index.behind()).toBe(commits + SEARCH_OVERLAP)
})
