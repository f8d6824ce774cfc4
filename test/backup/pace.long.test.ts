import { afterAll, expect, test } from 'vitest'
import { atPace, startPace } from '../../src/domain/backup/pace.ts'
import { BACKUP_BYTES_PER_SECOND, BACKUP_PIECE_BYTES } from '../../src/domain/limits/backups.ts'
import { countTransactions } from '../../src/store/backup/activity.ts'
import { createTestDatabase } from '../support/database.ts'
import { waitUntil } from '../support/wait.ts'

const database = await createTestDatabase()
afterAll(() => database.drop())

/** Whether an hour's worth of bytes may be taken at once. */
async function mayHurry(pace: { take(bytes: number): Promise<void> }): Promise<boolean> {
  const hour = pace.take(BACKUP_BYTES_PER_SECOND * 3_600).then(() => true)
  return Promise.race([hour, new Promise<false>((resolve) => setImmediate(resolve, false))])
}

/** A database that says at each look how many transactions have ended since the one before. */
function endingSo(each: () => number, standingBy = 0) {
  let ended = 0
  return async () => {
    ended += each()
    return { ended, standingBy }
  }
}

test('transactions that anybody ends are counted', async () => {
  const before = await countTransactions(database.db)
  for (let count = 0; count < 20; count++) await database.db.query('SELECT 1')
  await waitUntil('them to be counted', async () => (await countTransactions(database.db)) >= before + 20)
})

test('while others work, bytes are taken at the rate: all of them, in their order, and in small pieces', async () => {
  const bytes = Buffer.from(Array.from({ length: BACKUP_BYTES_PER_SECOND / 4 }, (_, at) => at % 251))
  async function* source() {
    yield bytes.subarray(0, bytes.length / 2)
    yield bytes.subarray(bytes.length / 2)
  }
  const pace = startPace(endingSo(() => 1_000))
  const begun = performance.now()
  const read: Buffer[] = []
  for await (const piece of atPace(pace, source())) read.push(piece)
  // A quarter of a second's worth, of which a little may be caught up with.
  expect(performance.now() - begun).toBeGreaterThan(200)
  expect(Buffer.concat(read).equals(bytes)).toBe(true)
  expect(Math.max(...read.map(({ length }) => length))).toBe(BACKUP_PIECE_BYTES)
  await pace.stop()
})

test('while nobody works they are taken at once, and no longer when somebody comes', async () => {
  let each = 0
  const pace = startPace(endingSo(() => each))
  await waitUntil('quiet', () => mayHurry(pace), { everyMs: 300 })
  each = 1_000
  await waitUntil('work', async () => !(await mayHurry(pace)), { everyMs: 300 })
  await pace.stop()
})

test('looks of nodes that stand by are no work; what goes beyond them is', async () => {
  let each = 55
  // A look late on a busy machine makes it less a second, never more.
  const pace = startPace(endingSo(() => each, 5))
  await waitUntil('quiet', () => mayHurry(pace), { everyMs: 300 })
  each = 5_000
  await waitUntil('work', async () => !(await mayHurry(pace)), { everyMs: 300 })
  await pace.stop()
})

test('where the database cannot be asked others may work; and once it is stopped, a backup holds nothing up', async () => {
  const pace = startPace(() => Promise.reject(new Error('gone')))
  expect(await mayHurry(pace)).toBe(false)
  await pace.stop()
  await pace.take(BACKUP_BYTES_PER_SECOND * 3_600)
})

test('it asks again after the database could not be asked once', async () => {
  let asked = 0
  const pace = startPace(async () => {
    asked += 1
    if (asked === 1) throw new Error('away')
    return { ended: 0, standingBy: 0 }
  })
  await waitUntil('quiet', () => mayHurry(pace), { everyMs: 300 })
  await pace.stop()
})
