import { afterAll, beforeAll, expect, it } from 'vitest'
import { ProtocolError } from '../../../src/core/errors.ts'
import type { Database } from '../../../src/store/db/db.ts'
import { openLedger } from '../../../src/store/db/ledger.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** A database whose next commit happens, but whose answer is lost. */
function forgetful(db: Database): { db: Database; loseNext(): void } {
  let isLosing = false
  const tx: Database['tx'] = async (work) => {
    const result = await db.tx(work)
    if (!isLosing) return result
    isLosing = false
    throw new ProtocolError('M_UNKNOWN', 'away', { status: 503 })
  }
  return {
    db: { ...db, tx },
    loseNext() {
      isLosing = true
    },
  }
}

it('no position is given twice when the answer to a commit was lost, and listeners learn of what it wrote', async () => {
  const { db, loseNext } = forgetful(database.db)
  const ledger = await openLedger(db)
  let missed = 0
  ledger.onMissed(() => {
    missed += 1
  })
  const positions: number[] = []
  const write = () =>
    ledger.append(
      async (_, position) => position,
      (position) => positions.push(position),
    )
  const first = await write()
  loseNext()
  await expect(write()).rejects.toThrow('away')
  expect(ledger.position()).toBe(first)
  const results = await Promise.all([write(), write()])
  expect(results).toEqual([first + 2, first + 3])
  expect(missed).toBe(1)
  expect(positions).toEqual([first, first + 2, first + 3])
  expect(await write()).toBe(first + 4)
  expect(missed).toBe(1)
})

it('what was written at a position is noted before anybody can read that far', async () => {
  const ledger = await openLedger(database.db)
  const before = ledger.position()
  const seen: [committed: number, read: number][] = []
  await Promise.all(
    [1, 2, 3].map(() =>
      ledger.append(
        async () => {},
        (_, position) => seen.push([position, ledger.position()]),
      ),
    ),
  )
  expect(seen).toEqual([1, 2, 3].map((step) => [before + step, before]))
})

it('listeners hear that the position has moved before a writer does, also after an answer was lost', async () => {
  const { db, loseNext } = forgetful(database.db)
  const ledger = await openLedger(db)
  const heard: (number | string)[] = []
  ledger.onMoved(() => heard.push(ledger.position()))
  const write = (name: string) => ledger.append(async () => {}).then(() => heard.push(name))
  const before = ledger.position()
  await write('first')
  loseNext()
  await expect(write('lost')).rejects.toThrow('away')
  await write('last')
  expect(heard).toEqual([before + 1, 'first', before + 2, before + 3, 'last'])
})

it('two processes that write at once give each position once, without gaps, and hear of what the other wrote', async () => {
  const ledgers = [await openLedger(database.db), await openLedger(database.db)]
  const before = ledgers[0]!.position()
  const missed = [0, 0]
  ledgers.forEach((ledger, index) => {
    ledger.onMissed(() => {
      missed[index]! += 1
    })
  })
  const rounds = Array.from({ length: 20 }, () => 0)
  const positions = await Promise.all(
    ledgers.map(async (ledger) => {
      const given: number[] = []
      for (const _ of rounds) given.push(await ledger.append(async (_tx, position) => position))
      return given
    }),
  )
  for (const given of positions) expect(given).toEqual(given.toSorted((one, other) => one - other))
  const all = positions.flat().toSorted((one, other) => one - other)
  expect(all).toEqual(Array.from({ length: 40 }, (_, index) => before + index + 1))
  for (const ledger of [0, 1, 0]) await ledgers[ledger]!.append(async () => {})
  expect(ledgers[0]!.position()).toBe(before + 43)
  expect(missed.every((times) => times > 0)).toBe(true)
})
