import { afterAll, beforeAll, expect, it } from 'vitest'
import { MAX_FREQUENT_SEARCH_CHARS, MAX_FREQUENT_SEARCHES } from '../../../src/domain/limits/search.ts'
import { createFrequentSearches } from '../../../src/domain/rooms/read/search-hits.ts'
import { findMatches, type SearchKind } from '../../../src/store/events/search.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

const MESSAGES = 12_000

let database: TestDatabase

/** Room 1 has every tenth message, room 2 the others; each third one is of 'rare', and the first is a name. */
beforeAll(async () => {
  database = await createTestDatabase()
  await database.db.query(
    `INSERT INTO search_text (event_nid, ts, words)
     SELECT n, 1000 + n, array_to_tsvector(ARRAY['often', CASE WHEN n % 300 = 0 THEN 'rare' ELSE 'other' END,
       E'\\u0001r' || CASE WHEN n % 10 = 0 THEN 1 ELSE 2 END, CASE WHEN n = 10 THEN E'\\u0001n' ELSE E'\\u0001m' END])
     FROM generate_series(1, $1::int) AS n`,
    [MESSAGES],
  )
})

afterAll(() => database.drop())

const ALL: SearchKind[] = ['message', 'name', 'topic']
const BEFORE = { ts: 1_000 + 6_001, eventNid: 0 }

it.each([
  ['many matches in all rooms', ['often'], [1], ALL, undefined, [12_000, 11_990, 11_980]],
  ['many matches, before a place', ['often'], [1], ALL, BEFORE, [6_000, 5_990, 5_980]],
  ['many matches in other rooms', ['often', 'other'], [3], ALL, undefined, []],
  ['few matches', ['rare', 'often'], [1], ALL, undefined, [12_000, 11_700, 11_400]],
  ['few matches in other rooms', ['rare'], [2], ALL, undefined, []],
  ['messages alone', ['often'], [1], ['message'] as SearchKind[], { ts: 1_020, eventNid: 20 }, []],
  ['names alone', ['often'], [1], ['name'] as SearchKind[], undefined, [10]],
  ['both rooms', ['often'], [1, 2], ALL, undefined, [12_000, 11_999, 11_998]],
])('finds the newest of %s', async (_, words, roomNids, kinds, before, expected) => {
  const frequent = new Set<string>()
  // The second time, it is known whether the words are frequent.
  for (let time = 0; time < 2; time++) {
    const found = await findMatches(database.db, { words, kinds, roomNids, before, limit: 3 }, true, frequent)
    expect(found.map(({ event_nid }) => event_nid)).toEqual(expected)
  }
})

it('searches frequent words twice the first time only', async () => {
  const frequent = createFrequentSearches()
  let queries = 0
  const reader = {
    query(...parts: Parameters<typeof database.db.query>) {
      queries++
      return database.db.query(...parts)
    },
  } as typeof database.db
  const search = async (words: string[]) => {
    queries = 0
    await findMatches(reader, { words, kinds: ALL, roomNids: [1], before: undefined, limit: 3 }, true, frequent)
    return queries
  }
  const counts: number[] = []
  for (const words of [
    ['often', 'other'],
    ['other', 'often'],
    ['often', 'rare'],
    ['often', 'rare'],
  ]) {
    counts.push(await search(words))
  }
  expect(counts).toEqual([2, 1, 1, 1])
})

it('remembers only so many searches, and no long ones', () => {
  const frequent = createFrequentSearches()
  for (let count = 0; count <= MAX_FREQUENT_SEARCHES; count++) frequent.add(`word${count}`)
  frequent.add('w'.repeat(MAX_FREQUENT_SEARCH_CHARS + 1))
  expect(['word0', 'word1', `word${MAX_FREQUENT_SEARCHES}`].map((word) => frequent.has(word))).toEqual([
    false,
    true,
    true,
  ])
  expect(frequent.has('w'.repeat(MAX_FREQUENT_SEARCH_CHARS + 1))).toBe(false)
})
