import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { UserId } from '../../src/core/ids.ts'
import { type ArchivePart, createArchiveContent, FIRST_PART } from '../../src/domain/oauth/archive/archive-content.ts'
import { NOT_GIVEN, OWN_FILES, OWN_PARTS } from '../../src/domain/oauth/archive/own-data.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

/** What belongs to a person is one list. A migration that adds a table about users has to say in it whether it belongs to them. */

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** How columns that name a person are called here. */
const NAMES_PERSON =
  /(^|_)(user|sender|creator|owner|reporter|signer|inviter|actor|author|person|account|localpart|address|addresses|subject|ip)(_|$)|_by$/

const given = [...OWN_FILES.flatMap(({ tables }) => tables), ...Object.values(OWN_PARTS).flat()]
const notGiven = Object.values(NOT_GIVEN).flat()

/** Tables of the database that name a person by a column, or refer to one that does. */
async function tablesAboutPeople(): Promise<string[]> {
  const columns = await database.db.query<{ name: string; column: string }>(
    `SELECT table_name AS name, column_name AS column FROM information_schema.columns WHERE table_schema = current_schema()`,
  )
  const refers = await database.db.query<{ name: string }>(
    `SELECT DISTINCT conrelid::regclass::text AS name FROM pg_constraint
     WHERE contype = 'f' AND confrelid IN ('matrix_user'::regclass, 'account'::regclass, 'device'::regclass)`,
  )
  const named = columns.filter(({ column }) => NAMES_PERSON.test(column)).map(({ name }) => name)
  return [...new Set([...named, ...refers.map(({ name }) => name)])].sort()
}

test('each table that names users is in the list once: it belongs to them, or it does not because', async () => {
  const listed = [...given, ...notGiven]
  const people = await tablesAboutPeople()
  expect(people.length).toBeGreaterThan(50)
  expect(people.filter((name) => !listed.includes(name))).toEqual([])
  expect(listed.filter((name, index) => listed.indexOf(name) !== index)).toEqual([])
  const all = await database.db.query<{ name: string }>(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema()',
  )
  const names = new Set(all.map(({ name }) => name))
  expect(listed.filter((name) => !names.has(name))).toEqual([])
})

test('a new table with such a column is noticed', async () => {
  await database.db.tx((tx) => tx.query('CREATE TABLE later (later_nid bigint, creator_nid bigint)'))
  expect(await tablesAboutPeople()).toContain('later')
  await database.db.tx((tx) => tx.query('DROP TABLE later'))
})

test('making an archive reads each table that belongs to people', async () => {
  const userId = '@nobody:localhost' as UserId
  const spy = vi.spyOn(pg.Client.prototype, 'query')
  const partOf = createArchiveContent({ db: database.db, clock: Date, openMedia: () => Promise.reject(new Error()) })
  const names: string[] = []
  for (let part: ArchivePart | null = FIRST_PART; part !== null; ) {
    const made = await partOf({ userNid: 1, userId }, part)
    for await (const piece of made.pieces) names.push(piece.subarray(0, 100).toString('latin1').split('\0')[0]!)
    part = made.next
  }
  const statements = spy.mock.calls
    .map(([first]) => (typeof first === 'string' ? first : (first as unknown as { text: string }).text))
    .join('\n')
  spy.mockRestore()
  const isRead = (table: string) => new RegExp(`\\b(?:FROM|JOIN)\\s+${table}\\b`).test(statements)
  // The rooms of a person are read before the events in them, and this one is in none.
  expect(given.filter((table) => !isRead(table) && table !== 'event')).toEqual([])
  for (const { name } of OWN_FILES) expect(names).toContain(name)
})
