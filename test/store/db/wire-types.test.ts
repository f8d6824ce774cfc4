import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})

afterAll(() => database.drop())

async function read(expression: string, values: readonly unknown[] = []): Promise<unknown> {
  const [row] = await database.db.query<{ value: unknown }>(`SELECT ${expression} AS value`, values)
  return row?.value
}

describe('what Postgres sends', () => {
  const cases: [expression: string, value: unknown][] = [
    ['true', true],
    ['false', false],
    ['NULL::bigint', null],
    ['200::bigint', 200],
    ['(-129)::bigint', -129],
    ['1795221407490::bigint', 1795221407490],
    ['9007199254740991::bigint', Number.MAX_SAFE_INTEGER],
    ['32767::smallint', 32767],
    ['40000::int', 40000],
    ['count(*)', 1],
    ['0.5::float8', 0.5],
    ["'über 😀'::text", 'über 😀'],
    ["'{}'::bigint[]", []],
    ["'{255,-1,1795221407490}'::bigint[]", [255, -1, 1795221407490]],
    ["'{128}'::int[]", [128]],
    ["ARRAY['a,b','ü \"x\"','']", ['a,b', 'ü "x"', '']],
  ]
  it.each(cases)('%s', async (expression, value) => {
    expect(await read(expression)).toEqual(value)
  })

  it('every byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    expect(await read('$1::bytea', [bytes])).toEqual(bytes)
    expect(await read('$1::bytea', [Buffer.alloc(0)])).toEqual(Buffer.alloc(0))
  })

  it('refuses a type that nobody thought of', async () => {
    await expect(read("'1 day'::interval")).rejects.toThrow(/no reader/)
  })
})
