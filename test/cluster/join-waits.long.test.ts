import { afterEach, beforeEach, expect, it } from 'vitest'
import { joinNodes } from '../../src/domain/cluster/join.ts'
import { findNode, type NodeFacts } from '../../src/store/cluster/nodes.ts'
import { WRITER } from '../../src/store/db/writer-lock.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { waitUntil } from '../support/wait.ts'
import { openProcesses, type Processes, standing } from './processes.ts'

/** What waits for locks and leases to end. */

let database: TestDatabase
let processes: Processes
const node = (change?: Partial<NodeFacts>) => processes.node(change)

beforeEach(async () => {
  database = await createTestDatabase()
  processes = openProcesses(database)
})
afterEach(async () => {
  await processes.endAll()
  await database.drop()
})

it('a second process is refused while the first one runs, with a secret or without', async () => {
  await joinNodes(node({ cluster: undefined }))
  await Promise.all([
    expect(joinNodes(node({ cluster: undefined }))).rejects.toThrow('another Hearth is using this database'),
    expect(joinNodes(node())).rejects.toThrow('a Hearth without cluster.secret uses this database'),
  ])
  expect((await findNode(database.db, WRITER))?.fence).toBe(1)
})

it('a node whose lease has ended loses the place, its open transactions and its connections', async () => {
  const before = node()
  const first = await joinNodes(before)
  let goOn: () => void = () => {}
  const stopped = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const stuck = before.db.tx(async (tx) => {
    await tx.query('UPDATE ledger SET position = position')
    await stopped
  })
  await waitUntil('a row that is locked', async () => {
    const rows = await database.db.query(`SELECT 1 AS one FROM pg_locks WHERE relation = 'ledger'::regclass`)
    return rows.length > 0
  })
  const second = standing(node())
  await second.began()
  // As if the node had not said for long that it runs.
  await database.db.query('UPDATE node SET expires_at = 0')
  const lease = await second.joined
  await lease.writing.query('UPDATE ledger SET position = position')
  await first.lost
  expect(first.isHeld()).toBe(false)
  expect(lease.isHeld()).toBe(true)
  await expect(first.writing.query('SELECT 1 AS one')).rejects.toThrow()
  goOn()
  await expect(stuck).rejects.toThrow()
})

it('of two that stand by, one gets the place', async () => {
  const first = await joinNodes(node())
  const others = [standing(node()), standing(node())]
  for (const other of others) await other.began()
  await first.leave()
  await processes.all[0]!.end()
  const lease = await Promise.race(others.map(({ joined }) => joined))
  expect(lease.fence).toBe(2)
  for (const other of others) other.stop()
  const outcomes = await Promise.allSettled(others.map(({ joined }) => joined))
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect((await findNode(database.db, WRITER))?.fence).toBe(2)
})

it('of several that begin at once on an empty database, one serves and the others stand by', async () => {
  const all = [standing(node()), standing(node()), standing(node())]
  const lease = await Promise.race(all.map(({ joined }) => joined))
  expect(lease.fence).toBe(1)
  const isRefused: unknown[] = []
  for (const { joined } of all) joined.catch((error: unknown) => isRefused.push(error))
  const began = all.map((one) => Promise.race([one.joined.catch(() => {}), one.began()]))
  await Promise.all(began)
  expect(isRefused).toEqual([])
  for (const one of all) one.stop()
  const outcomes = await Promise.allSettled(all.map(({ joined }) => joined))
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected'])
})

it('a process that cannot stand by says so after a while', { timeout: 60_000 }, async () => {
  await joinNodes(node())
  await expect(joinNodes(node())).rejects.toThrow('a node of this cluster serves')
})
