import { afterAll, expect, test } from 'vitest'
import { getQueues, type QueueRow, saveQueues } from '../../../src/store/appservices/appservice-queue.ts'
import { beginEpoch } from '../../../src/store/backup/restore-epochs.ts'
import { createTestDatabase } from '../../support/database.ts'

const database = await createTestDatabase()
afterAll(() => database.drop())

test('after a restore a service gets what was in flight as it was, and no other id again that it may have seen', async () => {
  const { db } = database
  const nothing = { body: null, up_to: null, failures: 0, retry_at: 0, news_position: 3, news_up_to: null }
  const inFlight = { body: '{"events":[]}', up_to: 7, failures: 2, retry_at: 9_000, news_position: 3, news_up_to: 4 }
  const of = (appservice_id: string, txn_id: number, rest: typeof nothing | typeof inFlight): QueueRow => ({
    ...{ appservice_id, position: 5, txn_id },
    ...rest,
  })
  const now = 1_000_000
  await db.tx((tx) =>
    saveQueues(tx, [of('busy', 400, inFlight), of('idle', 400, nothing), of('ahead of the clock', now + 1, inFlight)]),
  )
  await db.tx((tx) => {
    const by = { epoch: 'second', now, serverName: 'here', eventPosition: 0, ledgerPosition: 0 }
    return beginEpoch((text, values) => tx.query(text, values), by)
  })
  const rows = new Map((await getQueues(db)).map((row) => [row.appservice_id, row]))
  expect(rows.get('busy')).toEqual({ ...of('busy', 400, inFlight), failures: 0, retry_at: 0 })
  expect(rows.get('idle')).toEqual(of('idle', rows.get('idle')!.txn_id, nothing))
  expect(rows.get('idle')!.txn_id).toBeGreaterThanOrEqual(now)
  const ahead = rows.get('ahead of the clock')!
  expect(ahead).toEqual(of('ahead of the clock', ahead.txn_id, nothing))
  expect(ahead.txn_id).toBeGreaterThan(now + 1)
})
