import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { PROJECT_ROOT } from '../support/project.ts'
import { ROWS } from './rows.ts'

/** What stands in quotes after the words that begin a test or a table of cases. */
const QUOTED = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g

const names = new Map<string, readonly string[]>()

function namesIn(file: string): readonly string[] {
  const path = join(PROJECT_ROOT, 'test', file)
  const found = names.get(file) ?? (existsSync(path) ? (readFileSync(path, 'utf8').match(QUOTED) ?? []) : [])
  names.set(file, found)
  return found
}

describe.each(Object.entries(ROWS))('each row of %s has its test', (_table, rows) => {
  it.each(rows)('%s: %s, %s', (_row, file, name) => {
    expect(namesIn(file).some((text) => text.includes(name))).toBe(true)
  })
})

it('no row is missing of those that are numbered', () => {
  const numbers = (table: string) => new Set((ROWS[table] ?? []).map(([row]) => row.split(',')[0]))
  expect([...numbers('OPEN')]).toEqual(Array.from({ length: 37 }, (_, n) => `${n + 1}`))
  expect([...numbers('SECURITY')]).toEqual(Array.from({ length: 30 }, (_, n) => `S${n + 1}`))
})
