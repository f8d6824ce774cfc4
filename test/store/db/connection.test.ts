import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { PipelinedConnection } from '../../../src/store/db/connection.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { waitUntil } from '../../support/wait.ts'

let database: TestDatabase
let connection: PipelinedConnection
let holder: pg.Client

beforeAll(async () => {
  database = await createTestDatabase(true)
  connection = new PipelinedConnection(database.connection)
  holder = new pg.Client(database.connection)
  await holder.connect()
})
afterAll(async () => {
  await connection.close()
  await holder.end()
  await database.drop()
})

it('a statement that cannot be parsed fails alone, whatever was sent behind it', async () => {
  await holder.query('CREATE SCHEMA later; CREATE TABLE later.thing AS SELECT 1 AS n')
  await holder.query('SELECT pg_advisory_lock(1), pg_advisory_lock(2)')
  const ask = () => connection.query('SELECT n FROM thing')
  // Opens it, so that what follows is sent at once.
  await connection.query('SELECT 1 AS one')
  const first = ask()
  const firstWait = connection.query('SELECT pg_advisory_xact_lock(1) IS NULL AS one')
  const behind = ask()
  const found = connection.query('SET search_path TO later')
  const secondWait = connection.query('SELECT pg_advisory_xact_lock(2) IS NULL AS two')
  await expect(first).rejects.toMatchObject({ code: '42P01' })
  const anew = ask()
  await holder.query('SELECT pg_advisory_unlock(1)')
  await Promise.all([firstWait, found])
  const again = ask()
  await holder.query('SELECT pg_advisory_unlock(2)')
  await secondWait
  expect(await Promise.all([behind, anew, again])).toEqual([[{ n: 1 }], [{ n: 1 }], [{ n: 1 }]])
  expect(await ask()).toEqual([{ n: 1 }])
})

it('a write that is asked again is done once', async () => {
  await holder.query('CREATE SCHEMA written; CREATE TABLE written.word (n int, no serial)')
  const write = (n: number) => connection.query('INSERT INTO word (n) VALUES ($1) RETURNING n', [n])
  const first = write(1)
  const behind = [write(2), write(3)]
  const found = connection.query('SET search_path TO written')
  await expect(first).rejects.toMatchObject({ code: '42P01' })
  expect(await Promise.all([...behind, found])).toEqual([[{ n: 2 }], [{ n: 3 }], []])
  await write(4)
  expect((await holder.query('SELECT n FROM written.word ORDER BY no')).rows).toEqual([{ n: 2 }, { n: 3 }, { n: 4 }])
})

it('a statement that can never be parsed fails with its own error every time', async () => {
  const ask = () => connection.query('SELECT n FROM nothing WHERE n = $1', [1])
  const failed = await Promise.allSettled([ask(), ask(), ask()])
  const own = { status: 'rejected', reason: expect.objectContaining({ code: '42P01' }) }
  expect(failed).toEqual([own, own, own])
})

it('a connection that is closed while it is being opened does not stay open', async () => {
  const early = new PipelinedConnection({ ...database.connection, application_name: 'closed early' })
  const asked = early.query('SELECT 1 AS one')
  await early.close()
  await expect(asked).rejects.toMatchObject({ status: 503 })
  await waitUntil('the connection to end', async () => {
    const { rows } = await holder.query(`SELECT 1 FROM pg_stat_activity WHERE application_name = 'closed early'`)
    return rows.length === 0 || undefined
  })
})
