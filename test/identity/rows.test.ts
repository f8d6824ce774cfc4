import { describe, expect, it } from 'vitest'
import { hasTest } from '../support/test-names.ts'
import { ROWS } from './rows.ts'

describe.each(Object.entries(ROWS))('each row of %s has its test', (_table, rows) => {
  it.each(rows)('%s: %s, %s', (_row, file, name) => {
    expect(hasTest(file, name)).toBe(true)
  })
})

it('no row is missing of those that are numbered', () => {
  const numbers = (table: string) => new Set((ROWS[table] ?? []).map(([row]) => row.split(',')[0]))
  expect([...numbers('OPEN')]).toEqual(Array.from({ length: 37 }, (_, n) => `${n + 1}`))
  expect([...numbers('SECURITY')]).toEqual(Array.from({ length: 30 }, (_, n) => `S${n + 1}`))
})
