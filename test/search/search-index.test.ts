import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { ByteBudget } from '../../src/core/byte-budget.ts'
import { MAX_UNINDEXED_EVENTS, SEARCH_OVERLAP } from '../../src/domain/limits/search.ts'
import { createEventCache, type EventCache } from '../../src/domain/rooms/room/event-cache.ts'
import type { RoomEvent } from '../../src/domain/rooms/room/room-event.ts'
import { createSearchIndex, type SearchIndex } from '../../src/domain/search/search-index.ts'
import { createSearchSignals, type SearchSignals } from '../../src/domain/search/search-signals.ts'
import { createReadSearchTexts } from '../../src/domain/search/search-texts.ts'
import type { Database } from '../../src/store/db/db.ts'
import { searchPosition, setSearchPosition } from '../../src/store/events/search.ts'
import { edit, redact } from '../relations/people.ts'
import { openHouse } from '../rooms/people.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { waitUntil } from '../support/wait.ts'

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

test('a pause while the database is read leaves the position where reading was, whatever comes meanwhile', async () => {
  const { db } = database
  let reads = 0
  const bulk: Database['bulk'] = {
    async query(text, values) {
      const rows = await db.bulk.query<never>(text, values)
      reads += 1
      searchSignals.committed([message(++newest)], [], [])
      paused.setPaused(true)
      return rows
    },
  }
  const events = createEventCache({ db, budget: new ByteBudget(1_000_000) })
  const paused = createSearchIndex({
    base: { config, db: { ...db, bulk }, log: pino({ level: 'silent' }) },
    roomBase: { events, searchSignals },
    rooms: { position: () => newest },
  })
  paused.setPaused(true)
  await paused.start?.()
  paused.setPaused(false)
  await waitUntil('it to read', () => reads > 0)
  await paused.stop?.()
  expect(await searchPosition(db)).toBe(POSITION)
})

test('what was redacted goes from the index after a kill, however far before the redaction it was', async () => {
  const house = await openHouse()
  try {
    const { db } = house.server.database
    const indexed = async () => {
      const rows = await db.query<{ words: string }>('SELECT words::text FROM search_text', [])
      return ['quokka', 'wombta', 'wombat'].filter((word) => rows.some(({ words }) => words.includes(`'${word}'`)))
    }
    const alice = await house.person('alice')
    const room = await alice.createRoom()
    const secret = await alice.say(room, 'quokka')
    const typo = await alice.say(room, 'wombta')
    const edited = await edit(alice, room, typo, 'wombat')
    await waitUntil('them to be indexed', async () => (await indexed()).join() === 'quokka,wombat')
    house.server.services.admin.search.setPaused(true)
    const [last] = await db.query<{ nid: number }>('SELECT max(event_nid) AS nid FROM event', [])
    await redact(alice, room, secret)
    await redact(alice, room, edited)
    await db.tx((tx) => setSearchPosition(tx, last!.nid + SEARCH_OVERLAP))
    await house.restart()
    await waitUntil('them to go', async () => (await indexed()).join() === 'wombta')
  } finally {
    await house.close()
  }
})

test('a message whose edit comes in the same turn is written once, even if memory keeps neither', async () => {
  const house = await openHouse()
  try {
    const { db } = house.server.database
    const alice = await house.person('alice')
    const room = await alice.createRoom()
    const typo = await alice.say(room, 'wombta')
    const [first, second] = [await edit(alice, room, typo, 'womba'), await edit(alice, room, typo, 'wombat')]
    await redact(alice, room, second)
    const nids = await db.query<{ nid: number }>('SELECT event_nid AS nid FROM event ORDER BY event_nid', [])
    const events = createEventCache({ db, budget: new ByteBudget(0) })
    const { texts } = await createReadSearchTexts({ db, events })(nids.map(({ nid }) => nid))
    const [edited, by] = [await events.getById(typo), await events.getById(first)]
    const written = texts.filter(({ eventNid }) => eventNid === edited!.nid)
    expect(written).toMatchObject([{ words: ['womba'], editNid: by!.nid }])
  } finally {
    await house.close()
  }
})
