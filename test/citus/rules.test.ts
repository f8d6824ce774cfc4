import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PLACED } from '../../scripts/citus/placement.ts'
import { distributable, distribution, problemsOf, readTables, type Table } from '../../scripts/citus/schema.ts'
import { reachOf, statementsIn } from '../../scripts/citus/statements.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { PROJECT_ROOT } from '../support/project.ts'

let database: TestDatabase
let tables: Table[]

beforeAll(async () => {
  database = await createTestDatabase()
  tables = await readTables(database.db)
})
afterAll(() => database.drop())

describe('the schema on Citus', () => {
  it('is read as it is', () => {
    const names = tables.map(({ name }) => name)
    expect(PLACED.filter((name) => !names.includes(name))).toEqual([])
    const event = tables.find(({ name }) => name === 'event')!
    expect(event.unique.toSorted()).toEqual([['event_id'], ['event_nid']])
    expect(tables.find(({ name }) => name === 'to_device')!.foreign).toEqual([
      { to: 'device', columns: ['user_nid', 'device_id'], toColumns: ['user_nid', 'device_id'] },
    ])
  })

  it('what is said to obey the rules is what obeys them', () => {
    const file = readFileSync(join(PROJECT_ROOT, 'migrations/citus/distribute.sql'), 'utf8')
    expect(file, 'npm run citus -- --write').toContain(`\n${distribution(tables)}\n`)
  })

  const table = (name: string, more: Partial<Table> = {}): Table => ({
    ...{ name, columns: ['room_nid', 'user_nid'], unique: [], foreign: [], triggers: [] },
    ...more,
  })

  it('a key holds the column that distributes, and there are no triggers', () => {
    expect(problemsOf(table('event', { unique: [['room_nid', 'event_nid']] }))).toEqual([])
    expect(problemsOf(table('event', { unique: [['event_id']] }))).toEqual(['the key (event_id) lacks room_nid'])
    expect(problemsOf(table('event', { columns: ['event_nid'] }))).toEqual(['it has no room_nid'])
    expect(problemsOf(table('event', { triggers: ['noting'] }))).toEqual(['it has the trigger noting'])
    expect(problemsOf(table('ledger', { unique: [['position']], triggers: ['noting'] }))).toEqual([])
  })

  it('a foreign key stays within a shard, or leads to what is everywhere', () => {
    const refers = (from: string, to: string, columns = ['user_nid'], toColumns = columns) =>
      problemsOf(table(from, { foreign: [{ to, columns, toColumns }] })).length === 0
    expect(refers('device', 'account')).toBe(true)
    expect(refers('device', 'account', ['user_nid', 'device_id'], ['device_id', 'user_nid'])).toBe(false)
    expect(refers('device', 'matrix_user')).toBe(true)
    expect(refers('device', 'event')).toBe(false)
    expect(refers('device', 'ledger')).toBe(false)
    expect(refers('ledger', 'device')).toBe(false)
    expect(refers('matrix_user', 'device')).toBe(false)
  })

  it('a table waits for those that it refers to', () => {
    const account = table('account')
    const device = table('device', { foreign: [{ to: 'account', columns: ['user_nid'], toColumns: ['user_nid'] }] })
    const names = (all: Table[]) => distributable(all).map(({ name }) => name)
    expect(names([device, account])).toEqual(['account', 'device'])
    expect(names([device, { ...account, triggers: ['noting'] }])).toEqual([])
  })
})

describe('statements on Citus', () => {
  const known = new Set(['event', 'room', 'device', 'account', 'ledger', 'matrix_user'])
  const reach = (text: string) => reachOf({ file: '', line: 1, text }, known)

  it.each([
    ['SELECT position FROM ledger WHERE is_only', 'no shard'],
    ['SELECT 1 FROM event WHERE room_nid = $1 AND room_pos > $2', 'one shard'],
    ['SELECT 1 FROM event e JOIN room r ON r.room_nid = e.room_nid WHERE e.room_nid = $1', 'one shard'],
    ['SELECT 1 FROM event e JOIN room r USING (room_nid) WHERE e.room_nid = $1', 'one shard'],
    ['SELECT 1 FROM event e JOIN room r ON r.last_nid = e.event_nid WHERE e.room_nid = $1', 'all'],
    ['SELECT 1 FROM device JOIN matrix_user USING (user_nid) WHERE user_nid = $1', 'one shard'],
    ['UPDATE room SET depth = $2 WHERE room_nid = ANY($1)', 'several'],
    ['SELECT 1 FROM event WHERE event_id = $1', 'all'],
    ['DELETE FROM device WHERE user_nid = $1', 'one shard'],
    ['INSERT INTO device (user_nid, device_id) VALUES ($1, $2) ON CONFLICT DO NOTHING', 'one shard'],
    ['INSERT INTO device (user_nid, device_id) SELECT * FROM unnest($1::int[], $2::text[])', 'several'],
    [
      'WITH new AS (INSERT INTO event (room_nid) VALUES ($1)) UPDATE room SET depth = 1 WHERE room_nid = $1',
      'in steps',
    ],
    ['SELECT 1 FROM event JOIN device ON device.user_nid = event.sender_nid WHERE room_nid = $1', 'rooms and users'],
  ])('%s: %s', (text, expected) => {
    expect(reach(text)).toBe(expected)
  })

  it('are found in sources', () => {
    const code = "const a = 'not SELECT'\nquery(`\n  SELECT $1 FROM event`, [])\nquery('DELETE FROM room', [])"
    expect(statementsIn('x.ts', code).map(({ line, text }) => [line, text.trim()])).toEqual([
      [2, 'SELECT $1 FROM event'],
      [4, 'DELETE FROM room'],
    ])
  })
})
