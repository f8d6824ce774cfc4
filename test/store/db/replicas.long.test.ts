import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { examineReplicas } from '../../../src/cli/doctor/replicas.ts'
import { type Database, openDatabase } from '../../../src/store/db/db.ts'
import { prepareDatabase } from '../../../src/store/db/prepare.ts'
import type { ReplicaState } from '../../../src/store/db/replicas.ts'
import { traceDatabase } from '../../../src/store/db/traced-database.ts'
import { searches, surveys, wholeTables } from '../../../src/store/db/whole-tables.ts'
import { startCuttable } from '../../support/cuttable.ts'
import { MIGRATIONS } from '../../support/database.ts'
import { takePlace } from '../../support/place.ts'
import { type Replicated, startReplicated } from '../../support/replica.ts'
import { waitUntil } from '../../support/wait.ts'

let servers: Replicated
let db: Database
const heard: (string | undefined)[] = []

beforeAll(async () => {
  servers = await startReplicated()
  const { connection } = servers.primary
  await prepareDatabase(connection, MIGRATIONS, 'localhost')
  db = openDatabase({
    connection,
    poolSize: 2,
    replicas: { urls: [servers.replicaUrl], heard: (_name, whyNot) => void heard.push(whyNot) },
  })
  await takePlace(db)
  await db.tx((tx) => tx.query('CREATE TABLE noted (n bigint PRIMARY KEY)'))
  await isUsed()
})
afterAll(async () => {
  await db?.close()
  await servers?.close()
})

const state = (): ReplicaState => db.replicas!.states()[0]!
const isUsed = () => waitUntil('the use of the replica', () => state().isUsed)
const WHERE = 'SELECT pg_is_in_recovery() AS is_replica'
const note = (n: number) => db.tx((tx) => tx.query('INSERT INTO noted VALUES ($1)', [n]))
const NOTED = 'SELECT max(n) AS n, pg_is_in_recovery() AS is_replica FROM noted'

async function atReplica(work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: servers.replicaUrl })
  await client.connect()
  await work(client).finally(() => client.end())
}

test('nothing connects to a replica before somebody reads there', async () => {
  let connections = 0
  const listener = createServer((socket) => {
    connections++
    socket.destroy()
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const urls = [`postgres://hearth@127.0.0.1:${(listener.address() as AddressInfo).port}/hearth`]
  const opened = openDatabase({
    connection: servers.primary.connection,
    poolSize: 1,
    replicas: { urls, heard: () => {} },
  })
  const traced = traceDatabase(opened, (_name, _attributes, work) => work())
  for (let n = 0; n < 50; n++) await traced.query('SELECT 1 AS one')
  expect(connections).toBe(0)
  expect(traced.replicas?.states()).toHaveLength(1)
  await waitUntil('a connection to it', () => connections > 0)
  await opened.close()
  listener.close()
})

test('a survey is answered by the replica, and has all that was committed before it was asked', async () => {
  const before = state().reads
  for (let n = 1; n <= 30; n++) {
    await note(n)
    const reader = n % 2 === 0 ? surveys(db) : wholeTables(db)
    const [found] = await reader.query<{ n: number }>(NOTED)
    expect(found?.n).toBe(n)
  }
  // On a busy machine it may be too late now and then.
  expect(state().reads).toBeGreaterThan(before + 15)
  expect(state().isUsed).toBe(true)
  expect(state().lagSeconds).toBeLessThan(5)
  expect(await searches(db).query(WHERE)).toEqual([{ is_replica: true }])
  expect(await wholeTables(db).query(`SELECT current_setting('enable_seqscan') AS it`)).toEqual([{ it: 'on' }])
  expect(heard).toEqual([undefined])
})

test('without replicas the same connections answer as ever', async () => {
  const alone = openDatabase({ connection: servers.primary.connection, poolSize: 1 })
  expect(alone.replicas).toBeUndefined()
  expect(searches(alone)).toBe(alone)
  expect(await surveys(alone).query(WHERE)).toEqual([{ is_replica: false }])
  await alone.close()
})

test('what is wrong with a question is said as by the primary', async () => {
  await expect(surveys(db).query('SELECT nothing_there')).rejects.toMatchObject({ code: '42703' })
  expect(state().isUsed).toBe(true)
})

test('a replica that lags: a survey goes to the primary at once, a search later; then it comes back by itself', async () => {
  heard.length = 0
  await atReplica((client) => client.query('SELECT pg_wal_replay_pause()'))
  await note(100)
  const begun = performance.now()
  expect(await surveys(db).query(NOTED)).toEqual([{ n: 100, is_replica: false }])
  expect(performance.now() - begun).toBeLessThan(3_000)
  expect(await searches(db).query(NOTED)).toEqual([{ n: 30, is_replica: true }])
  await waitUntil('the search at the primary', async () => {
    const [found] = await searches(db).query<{ n: number; is_replica: boolean }>(NOTED)
    return found?.is_replica === false && found.n === 100
  })
  await waitUntil('the words', () => heard.length > 0)
  expect(state().lagSeconds).toBeGreaterThan(4)
  await atReplica((client) => client.query('SELECT pg_wal_replay_resume()'))
  await isUsed()
  await waitUntil('an answer of the replica', async () => {
    const [found] = await surveys(db).query<{ n: number; is_replica: boolean }>(NOTED)
    expect(found?.n).toBe(100)
    return found?.is_replica
  })
  expect(heard).toEqual(['it is too far behind the primary', undefined])
})

test('a replica that ends in the middle of a read, and begins again', async () => {
  heard.length = 0
  const slow = surveys(db).query<{ is_replica: boolean }>(`${WHERE} FROM (SELECT pg_sleep(1)) AS slept`)
  const again = wholeTables(db).query<{ is_replica: boolean }>(`${WHERE} FROM (SELECT pg_sleep(1)) AS slept`)
  await atReplica(async (client) => {
    await waitUntil('both reads', async () => {
      const { rows } = await client.query(
        `SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()`,
      )
      return rows.length === 2
    })
  })
  await servers.stopReplica()
  expect([await slow, await again]).toEqual([[{ is_replica: false }], [{ is_replica: false }]])
  await waitUntil('the words', () => heard.length > 0)
  for (let count = 0; count < 10; count++) expect(await searches(db).query(WHERE)).toEqual([{ is_replica: false }])
  expect(heard).toEqual(['it does not answer'])
  await servers.startReplica()
  await isUsed()
  expect(await searches(db).query(WHERE)).toEqual([{ is_replica: true }])
  expect(heard).toEqual(['it does not answer', undefined])
})

test('a replica that answers nothing, and closes no connection, keeps nobody waiting for long', async () => {
  const { host, port } = servers.primary.connection
  const { pathname, searchParams } = new URL(servers.replicaUrl)
  const line = await startCuttable({ path: `${searchParams.get('host')}/.s.PGSQL.${port}` })
  const replicas: string[] = []
  const far = openDatabase({
    connection: { ...servers.primary.connection, host },
    poolSize: 1,
    replicas: {
      urls: [`postgres://hearth@127.0.0.1:${line.port}${pathname}`],
      heard: (_name, whyNot = 'used') => void replicas.push(whyNot),
    },
  })
  await waitUntil('its use', () => far.replicas!.states()[0]!.isUsed)
  expect(await searches(far).query(WHERE)).toEqual([{ is_replica: true }])
  line.cut()
  const begun = performance.now()
  const reads = [surveys(far), wholeTables(far), searches(far)].map((reader) => reader.query(WHERE))
  expect(await Promise.all(reads)).toEqual(reads.map(() => [{ is_replica: false }]))
  expect(performance.now() - begun).toBeLessThan(7_000)
  expect(replicas).toEqual(['used', 'it does not answer'])
  line.mend()
  await waitUntil('its use', () => far.replicas!.states()[0]!.isUsed)
  line.cut()
  // Nor does what is under way there keep a stop waiting.
  const last = surveys(far)
    .query(WHERE)
    .catch(() => {})
  await far.close()
  await last
  await line.close()
})

test('what is no replica of this database is never used, and the doctor says why', async () => {
  const { url, replicaUrl } = servers
  const another = replicaUrl.replace('/hearth?', '/postgres?')
  const found: string[] = []
  const wrong = openDatabase({
    connection: servers.primary.connection,
    poolSize: 1,
    replicas: { urls: [url, another], heard: (_name, whyNot = '') => void found.push(whyNot) },
  })
  expect(wrong.replicas?.states()).toHaveLength(2)
  await waitUntil('both', () => found.length === 2)
  expect(found.sort()).toEqual(['it has no database of this server', 'it is no replica: it takes writes itself'])
  expect(await surveys(wrong).query(WHERE)).toEqual([{ is_replica: false }])
  await wrong.close()
  const database = { url, replicas: [replicaUrl, url, another, 'postgres://x@127.0.0.1:1/x'], pool_size: 1 }
  const findings = await examineReplicas({ database } as unknown as Parameters<typeof examineReplicas>[0])
  expect(findings.map(({ verdict, text }) => `${verdict}: ${text}`)).toEqual([
    expect.stringMatching(/^ok: 0\.\d MB behind$/),
    'problem: is no replica: it takes writes itself',
    'problem: has no database of this server',
    expect.stringMatching(/^problem: does not answer: .*ECONNREFUSED/),
  ])
  expect(JSON.stringify(findings)).not.toContain('hearth@')
})

test('one that was promoted is left out', async () => {
  heard.length = 0
  await atReplica((client) => client.query('SELECT pg_promote()'))
  await waitUntil('the words', () => heard.length > 0)
  expect(heard).toEqual(['it is no replica: it takes writes itself'])
  await note(200)
  expect(await surveys(db).query(NOTED)).toEqual([{ n: 200, is_replica: false }])
})
